"""The ways in which a service may draft tokens, what each of them gave, and which one was chosen."""

from __future__ import annotations

from typing import Literal

from stoker.records.base import Record
from stoker.records.plan import Way

Objective = Literal["single", "throughput", "goodput"]
# Where a length by the number of draft tokens comes from: the engine's counters by position, its mean accept rate over all
# positions, or nothing but what is usual for such drafts.
LengthsBy = Literal["positions", "mean", "usual"]
# What became of a way: measured now, taken from an earlier run, it did not start or answer, the plan refuses it, or it was
# not worth a start.
Tried = Literal["measured", "kept", "failed", "refused", "left"]


class Seen(Record, frozen=True):
    """What one way gave for one content: a rate for each repeat, and the tokens that a step gives with 1 to N draft tokens.

    `lengths` is empty without drafts, and where the engine tells nothing of them. `run_id` is the run that was kept.
    `base_step_s` are the seconds of a step without drafts, where that was off or a lookup whose counters tell it.
    """

    content: str
    rates: tuple[float, ...]
    lengths: tuple[float, ...] = ()
    lengths_by: LengthsBy = "usual"
    accept_rate: float | None = None
    run_id: int | None = None
    base_step_s: float | None = None


class Sighting(Record, frozen=True):
    """A way that was measured, for each content; `start_logs`: of each start's rate, where there were several.

    `is_level`: what runs was asked in turn with it, so that both had the same machine, however fast.
    """

    way: Way
    seen: tuple[Seen, ...]
    is_kept: bool = False
    start_logs: tuple[float, ...] = ()
    is_level: bool = False


class Band(Record, frozen=True):
    """A rate with the interval that should hold it four times in five; None where too few repeats tell it."""

    tok_s: float
    low_tok_s: float | None
    high_tok_s: float | None


class TriedWay(Record, frozen=True):
    """A way, what was predicted of it before it was measured, and what it gave; None: nothing was, or it was not."""

    way: Way
    tried: Tried
    predicted: Band | None = None
    measured: Band | None = None
    accept_rate: float | None = None
    accept_length: float | None = None
    run_ids: tuple[int, ...] = ()
    why: str = ""


class TuneView(Record, frozen=True):
    """What `stoker tune` found.

    `chosen` is None where it ended before anything could be chosen. `starts` are those of an engine, the last one too;
    `sweep_starts` what trying everything would take. `expected_s` is how long it may take, None where nothing tells.
    `written` is the file that has the choice now; `lines` are what says it there.
    """

    service: str
    engine: str
    objective: Objective
    contents: tuple[str, ...]
    ways: tuple[TriedWay, ...]
    present: Way
    chosen: Way | None
    why: str
    starts: int
    sweep_starts: int
    took_s: float | None
    expected_s: float | None = None
    written: str | None = None
    lines: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
