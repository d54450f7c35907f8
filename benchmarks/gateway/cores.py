"""Decides which processor core is whose, so that the gateway has one for itself."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from benchmarks.gateway.peers import Cores

SYSTEM = Path("/sys/devices/system/cpu")


def read_cores(system: Path = SYSTEM) -> list[int]:
    """Returns one processor of each core that may be used: two threads of one core are not two cores."""
    return [min(threads) for threads in read_threads(system)]


def read_threads(system: Path = SYSTEM) -> list[set[int]]:
    """Returns the processors of each core that may be used, by their lowest number."""
    found = [_siblings(system, number) or {number} for number in sorted(os.sched_getaffinity(0))]
    return [threads for place, threads in enumerate(found) if threads not in found[:place]]


def _siblings(system: Path, number: int) -> set[int]:
    try:
        text = (system / f"cpu{number}" / "topology" / "thread_siblings_list").read_text()
    except OSError:
        return {number}
    return _listed(text) & os.sched_getaffinity(0)


def _listed(text: str) -> set[int]:
    """Returns the numbers of a list as the kernel writes it: `0-2,8`."""
    ranges = (part.partition("-") for part in text.strip().split(","))
    return {number for first, _, last in ranges for number in range(int(first), int(last or first) + 1)}


def choose_cores(wanted: Sequence[int] | None, cores: Sequence[int]) -> Cores:
    """Returns those that are wanted, else the last cores, since interrupts come to the first ones."""
    if wanted:
        return Cores(*wanted)
    if len(cores) > 2:
        return Cores(*cores[-3:])
    return Cores(cores[0], cores[1], cores[0]) if len(cores) == 2 else Cores()


def describe_cores(cores: Cores) -> str:
    """Returns who shares a core with whom."""
    if cores.gateway is None or cores.gateway in (cores.engine, cores.client):
        return "the gateway shares its core: no number means much"
    if cores.engine == cores.client:
        return "the gateway alone on one core, engine and client together on another"
    return "gateway, engine and client each alone on a core of their own"
