"""What an agent proposes to do, and what came of it."""

from __future__ import annotations

from typing import Literal

from stoker.records.base import Record

ActName = Literal["start", "stop", "switch", "fix"]


class Proposal(Record, frozen=True):
    """An act that waits to be confirmed: what would happen, and the token that makes it happen once.

    Of a fix: the `rule` that asks for it, and what changes in the plan (`settings`) and in stoker.toml (`lines`).
    """

    act: ActName
    service: str
    what: str
    token: str
    expires_in_s: float
    plan_id: str
    engine: str
    model: str
    memory_need_bytes: int
    state: str = ""
    goes: tuple[str, ...] = ()
    rule: str = ""
    settings: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()


class Audited(Record, frozen=True):
    """One line of the record of acts: `at` in seconds since the epoch, `who` as a client calls itself, or `watch.act`."""

    at: float
    who: str
    act: str
    service: str
    plan_id: str
    outcome: str
