"""What somebody wants adopted, and what was made of it."""

from __future__ import annotations

from stoker.records.base import Record
from stoker.records.plan import Plan
from stoker.records.rule import Finding
from stoker.records.views import ServiceView


class AdoptWish(Record, frozen=True):
    """A running engine to take over: its first process or its container, and what cannot be read off it or is otherwise.

    `pid` 0 means that `container` names it.
    """

    pid: int
    name: str | None = None
    model_name: str | None = None
    port: int | None = None
    claim_gib: float | None = None
    restart: bool = False
    container: str | None = None


class Adoption(Record, frozen=True):
    """A running engine as a plan; `findings` are what lint says of its call, `notes` what could not be found out."""

    plan: Plan
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()


class AdoptView(Record, frozen=True):
    """The service that an adopted process became."""

    service: ServiceView
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
