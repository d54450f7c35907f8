"""What a log tells of a failure: causes with their evidence, noise that caused nothing, and lines that nobody knows."""

from __future__ import annotations

from typing import Literal

from stoker.records.base import Record
from stoker.records.rule import Scalar, Severity, Standing

# certain: sign, scope and mistake are all there; likely: one fact of them is unknown; possible: more are, or it is disputed.
Confidence = Literal["certain", "likely", "possible"]


class LogLine(Record, frozen=True):
    """A line of a log, without its secrets; `line` counts from 1."""

    line: int
    text: str


class LogTail(Record, frozen=True):
    """The last lines that an engine printed, without those of noise, which `folded` counts."""

    lines: tuple[str, ...]
    folded: int


class LogSearch(Record, frozen=True):
    """The last lines of a log that hold a text; `found` counts all, `folded` those that were left out as noise."""

    lines: tuple[LogLine, ...]
    found: int
    folded: int
    read_lines: int


class Cause(Record, frozen=True):
    """A rule whose sign was found, and why it is the cause.

    `use` and `drop` are the changed wish, in the words of a rule; `command` says it as a command where there is one to
    change. `hangs_on` are facts that nobody knows. `times` counts how often the sign was seen; of a flood it is the least.
    `local` is the file of a rule of the user's own, and `contradicts` are rules that say otherwise.
    """

    rule: str
    title: str
    confidence: Confidence
    cause: str
    fix: str
    evidence: tuple[LogLine, ...]
    sources: tuple[str, ...]
    standing: Standing
    severity: Severity
    times: int = 1
    hangs_on: tuple[str, ...] = ()
    use: dict[str, Scalar] = {}  # noqa: RUF012 - msgspec copies it
    drop: tuple[str, ...] = ()
    command: str | None = None
    local: str = ""
    contradicts: tuple[str, ...] = ()


class Noise(Record, frozen=True):
    """Something that looks like a fault and is none, so that nobody looks there."""

    rule: str
    title: str
    cause: str
    evidence: tuple[LogLine, ...]


class Diagnosis(Record, frozen=True):
    """What one log tells. `findings` has the cause before its consequences; without one that is likely, `unknown` has the
    most telling lines, and `collect` says what else would help. `breaks_off`: nothing in it looks like a fault, and yet it
    ends without a word that the engine is ready, or the engine is known to have failed; `unknown` then has its last lines.

    `facts` is what the scopes of the rules were held against, and `starts` counts the starts in the log: the last
    one is told of. `ready` is whether it said that it is ready, `stopped` whether it then said that it was told to
    stop.
    """

    source: str
    engine: str | None
    version: str | None
    findings: tuple[Cause, ...]
    noise: tuple[Noise, ...]
    unknown: tuple[LogLine, ...]
    collect: tuple[str, ...]
    lines: int
    starts: int
    ready: bool
    facts: dict[str, str]
    breaks_off: bool = False
    stopped: bool = False
