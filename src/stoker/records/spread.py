"""One model over several boxes: what their link is, which ways there are, and what each box would run."""

from __future__ import annotations

from typing import Literal

from stoker.records.base import Record
from stoker.records.plan import Budget, LaunchSpec, Plan
from stoker.records.rule import Finding
from stoker.records.speed import LinkKind, WayView

Executor = Literal["mp", "ray"]


class RankLink(Record, frozen=True):
    """How one box reaches the others: its interface and address there, and its RDMA devices; None where nobody knows.

    `address` is IPv4, `devices` what NCCL calls them. `rate_gbit` and `mtu` are those of the slowest port in use.
    """

    box: str
    interface: str | None = None
    address: str | None = None
    devices: tuple[str, ...] = ()
    rate_gbit: float | None = None
    mtu: int | None = None
    gid_indices: tuple[int, ...] = ()


class Link(Record, frozen=True):
    """What connects the boxes. `kind` is what their facts allow, not what NCCL will have chosen: its log tells that."""

    kind: LinkKind
    because: str
    ranks: tuple[RankLink, ...]


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
