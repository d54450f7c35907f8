"""What one look saw, and what lies between two looks: growth, or nothing where counters began anew. Pure."""

from __future__ import annotations

from typing import NamedTuple

from stoker.records import Gpu, Memory

# Looks that lie further apart are no stretch of time in which somebody watched: a sleeping machine, a stopped daemon.
GAP_S = 300.0


class EngineSample(NamedTuple):
    """One look at a service that is READY; totals are those since its engine's start, None where it does not tell them.

    `at_s` is of a clock that never goes back. `launch` tells starts apart. `requests` is what the gateway has with it,
    `work` anything that changes while it works, `stall_s` an ITL that 99 of 100 tokens stayed below. `lost` says why its
    metrics could not be read; empty where they were. `odd` says what they tell that cannot be, as long as it is so.
    """

    at_s: float
    launch: int
    requests: int = 0
    running: int | None = None
    waiting: int | None = None
    generated: int | None = None
    prompted: int | None = None
    drafted: int | None = None
    accepted: int | None = None
    steps: int | None = None
    work: object = None
    stall_s: float | None = None
    ttft_s: float | None = None
    ended: int | None = None
    failed: int | None = None
    lost: str = ""
    odd: str = ""


class MachineSample(NamedTuple):
    """One look at the machine; `disks` are free and total bytes by what they hold."""

    at_s: float
    memory: Memory | None
    gpus: tuple[Gpu, ...] = ()
    disks: tuple[tuple[str, int, int], ...] = ()


class Growth(NamedTuple):
    """By how much an engine's totals grew between two looks; None where one of them did not tell."""

    at_s: float
    took_s: float
    generated: int | None = None
    prompted: int | None = None
    drafted: int | None = None
    accepted: int | None = None
    steps: int | None = None


def grown(before: EngineSample | None, after: EngineSample) -> Growth | None:
    """Returns what lies between two looks; None where there is no telling: the first, another launch, counters that fell."""
    if before is None or before.launch != after.launch or after.at_s <= before.at_s:
        return None
    pairs = [
        (before.generated, after.generated), (before.prompted, after.prompted), (before.drafted, after.drafted),
        (before.accepted, after.accepted), (before.steps, after.steps),
    ]  # fmt: skip
    by = [None if was is None or now is None else now - was for was, now in pairs]
    if any(amount is not None and amount < 0 for amount in by):
        return None
    growth = Growth(after.at_s, after.at_s - before.at_s, *by)
    cannot_be = growth.drafted is not None and growth.accepted is not None and growth.accepted > growth.drafted
    return None if cannot_be else growth
