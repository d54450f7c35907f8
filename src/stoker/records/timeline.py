"""How long an engine took to start, and with what: read from its own log lines."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from stoker.records.base import Record
from stoker.records.rule import Finding, StageName

Mark = Literal["since start", "begin", "end", "amount"]
Seconds = Annotated[float, msgspec.Meta(ge=0)]
Bytes = Annotated[int, msgspec.Meta(ge=0)]


class StageSign(Record, frozen=True):
    """A line by which a stage is known: where it begins or ends, how long it took, how much it read.

    `pattern` may name groups: `took` in seconds, or `hours`, `minutes` and `seconds` of a clock; `read` is a `took` that
    counts the reading alone; `gib` and `mib` are what was read. `since start` ends a stage that began with the program,
    `amount` says nothing of time. `is_whole`: each process says the amount of the whole model, not that of its own part.
    """

    stage: StageName
    mark: Mark
    pattern: str
    is_whole: bool = False


class LogForm(Record, frozen=True):
    """How an engine's log is to be read: its clock, who speaks, and the signs of its stages.

    `stamp` finds a line's time by the groups year, month, day, hour, minute, second, milli and micro; without a day the
    clock counts from the start. `tick_s` is the smallest step of that clock. `speaker` names the process among several.
    `starts` is in a start's first lines, where the group `version` may tell the engine's; `ready` is in its last.
    """

    stamp: str
    tick_s: float
    speaker: str
    starts: str
    ready: str
    signs: tuple[StageSign, ...]


class Stage(Record, frozen=True):
    """One stage of a start; None is unknown. `line` is what it was read from.

    Where stages overlap, time counts for the shorter one alone, so that all of them together are never more than the
    start. `read_s` is how long the reading of the `bytes` took, where the log tells that apart.
    """

    name: StageName
    begin_s: Seconds | None
    took_s: Seconds | None
    line: str
    bytes: Bytes | None = None
    read_s: Seconds | None = None


class Timeline(Record, frozen=True):
    """One start of an engine. `unexplained_s` is the time for which no line of the log accounts.

    `begun_at` (since the epoch) is None where a log alone was read: it begins with its first line, not with the program.
    `total_s` is None where the engine never said that it is ready, or where nothing tells the time.
    """

    engine: str
    version: str | None
    begun_at: float | None
    is_ready: bool
    total_s: Seconds | None
    unexplained_s: Seconds | None
    stages: tuple[Stage, ...]


class Start(Record, frozen=True):
    """A start as the store keeps it: whose it was, by which plan, and how it went."""

    service: str
    plan_id: str
    timeline: Timeline


class StageRow(Record, frozen=True):
    """A stage beside the same stage of the start before; None is unknown, or that there was none."""

    name: str
    took_s: float | None
    before_s: float | None
    difference_s: float | None
    line: str


class Loading(Record, frozen=True):
    """How fast the weights were read, beside what the disk was measured to give; `disk_share` is 1 for all of it."""

    bytes: Bytes
    took_s: Seconds
    bytes_per_s: float
    disk_bytes_per_s: float | None = None
    disk_share: float | None = None


class TimelineView(Record, frozen=True):
    """What `stoker timeline` tells: a start beside the one before, and what to do about its slowest part.

    `slowest` is a stage's name, or `UNEXPLAINED`; `advice` are the rules that speak of it in this situation.
    """

    last: Timeline
    before: Timeline | None
    rows: tuple[StageRow, ...]
    slowest: str | None
    advice: tuple[Finding, ...]
    loading: Loading | None
