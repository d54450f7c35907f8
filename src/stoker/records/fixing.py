"""A fix of a service before it is applied, and what came of one that was."""

from __future__ import annotations

from typing import Literal

from stoker.records.base import Record
from stoker.records.diagnosis import Confidence

FixOutcome = Literal["written", "not written", "not applied"]


class FixView(Record, frozen=True):
    """What would mend a service: what changes in its plan and in `file`, each line begun with - or +.

    `goes` are the services that would stop for it. `digest` stands for exactly this: whoever says yes names it.
    """

    service: str
    rule: str
    title: str
    confidence: Confidence
    because: str
    settings: tuple[str, ...]
    lines: tuple[str, ...]
    file: str
    plan_id: str
    goes: tuple[str, ...]
    digest: str


class FixAsked(Record, frozen=True):
    """Yes to a fix, by the digest of what was shown."""

    digest: str


class FixTried(Record, frozen=True):
    """A fix that somebody said yes to: `outcome` is None while it is tried. `since` is seconds since the epoch."""

    service: str
    rule: str
    since: float
    outcome: FixOutcome | None = None
    why: str = ""


class SavedFix(Record, frozen=True):
    """A fix that is tried, as it is kept for a next daemon: `file` is to say `new_text` for `text` once it is READY."""

    tried: FixTried
    plan_id: str
    file: str
    text: str
    new_text: str
    lines: tuple[str, ...]
