"""One model over several boxes: what their link is, which ways there are, and what each box would run."""

from __future__ import annotations

from stoker.records.base import Record
from stoker.records.plan import Budget, LaunchSpec, Plan
from stoker.records.ranks import Link
from stoker.records.rule import Finding
from stoker.records.speed import WayView


class RankPlan(Record, frozen=True):
    """What one box runs: its plan, its memory, and the words; `before` has to run first on that box, such as Ray's own."""

    rank: int
    box: str
    plan: Plan
    budget: Budget | None
    before: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()


class SpreadReport(Record, frozen=True):
    """All that is to be said of a service over several boxes; `chosen` is None where no way can be."""

    service: str
    boxes: tuple[str, ...]
    link: Link
    ways: tuple[WayView, ...]
    chosen: WayView | None
    because: str
    ranks: tuple[RankPlan, ...] = ()
    findings: tuple[Finding, ...] = ()


class RankLaunch(Record, frozen=True):
    """The words of one rank; ranks start in this order, and the head, rank 0, comes last."""

    rank: int
    box: str
    spec: LaunchSpec
    before: tuple[str, ...] = ()
