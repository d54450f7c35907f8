"""What a link between boxes costs a step: small all-reduces by their number, large ones by their bytes too. Pure."""

from __future__ import annotations

import math
import tomllib
from functools import cache
from pathlib import Path

import msgspec

from stoker.plan.speed.shape import Shape
from stoker.records import Record
from stoker.records.speed import LinkKind

FILE = Path(__file__).parent / "data" / "links.toml"
REDUCES_A_LAYER = 2  # after attention and after the feed-forward part
HIDDEN_BYTES = 2
GIGABIT_BYTES_PER_S, OF_NOMINAL = 1e9 / 8, 0.92


class LinkCost(Record, frozen=True):
    """Seconds of a small all-reduce between two boxes, and bytes a second of large ones."""

    allreduce_s: float
    bytes_per_s: float


class LinkCosts(Record, frozen=True):
    """What a kind of link may cost, from the best to the worst that is thought possible."""

    kind: LinkKind
    because: str
    best: LinkCost
    usual: LinkCost
    worst: LinkCost


@cache
def known_links() -> dict[str, LinkCosts]:
    """Returns what is known of each kind of link."""
    rows = (msgspec.convert(row, LinkCosts) for row in tomllib.loads(FILE.read_text())["link"])
    return {row.kind: row for row in rows}


def costs_of(kind: LinkKind, rate_gbit: float | None = None) -> LinkCosts:
    """Returns a link's costs, no faster than its rate; of one that is not known, from RDMA's best to the sockets' worst."""
    known = known_links()
    if kind == "unknown":
        rdma, sockets = known["rdma"], known["sockets"]
        costs = LinkCosts(
            kind, f"{rdma.because} {sockets.because}", rdma.best, _middle(rdma.usual, sockets.usual), sockets.worst
        )
    else:
        costs = known[kind]
    if rate_gbit is None:
        return costs
    most = rate_gbit * GIGABIT_BYTES_PER_S * OF_NOMINAL
    slowed = {name: _at_most(getattr(costs, name), most) for name in ("best", "usual", "worst")}
    return msgspec.structs.replace(costs, **slowed)


def _middle(one: LinkCost, other: LinkCost) -> LinkCost:
    return LinkCost(math.sqrt(one.allreduce_s * other.allreduce_s), math.sqrt(one.bytes_per_s * other.bytes_per_s))


def _at_most(cost: LinkCost, bytes_per_s: float) -> LinkCost:
    return LinkCost(cost.allreduce_s, min(cost.bytes_per_s, bytes_per_s))


def reduced_s(cost: LinkCost, boxes: int, tokens: float, hidden: int, layers: float) -> float:
    """Returns what the all-reduces of so many layers take in one step of so many tokens.

    Between more than two boxes, of which nothing was measured, the exchanges of a small one are taken to grow by the
    logarithm of their number, as in a tree.
    """
    if boxes < 2:
        return 0.0
    sent_bytes = tokens * hidden * HIDDEN_BYTES * 2 * (boxes - 1) / boxes
    return layers * REDUCES_A_LAYER * (cost.allreduce_s * math.log2(boxes) + sent_bytes / cost.bytes_per_s)


def handed_on_s(cost: LinkCost, boxes: int, tokens: float, hidden: int) -> float:
    """Returns what a pipeline's step takes on the link: from box to box, and the chosen tokens back to the first."""
    if boxes < 2:
        return 0.0
    return boxes * cost.allreduce_s + (boxes - 1) * tokens * hidden * HIDDEN_BYTES / cost.bytes_per_s


def hidden_of(shape: Shape) -> int:
    """Returns how wide a model of this shape usually is: that of a dense one whose size lies between all and active."""
    seen = math.sqrt(shape.total_b * shape.active_b) * 1e9
    return int(math.sqrt(seen / (12 * shape.layers)))
