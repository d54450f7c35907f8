"""The ranks of one model over several boxes: what connects them, what a box is told, and a rank's place in the whole."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from stoker.records.base import Record
from stoker.records.speed import LinkKind

Executor = Literal["mp", "ray"]
# They become flags and variables of an engine on another box: nothing but what such names are made of.
PlainName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,62}$")]
Address = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,3}(\.[0-9]{1,3}){3}$")]
Size = Annotated[int, msgspec.Meta(ge=1, le=64)]


class RankLink(Record, frozen=True):
    """How one box reaches the others: its interface and address there, and its RDMA devices; None where nobody knows.

    `address` is IPv4, `devices` what NCCL calls them. `rate_gbit` and `mtu` are those of the slowest port in use.
    """

    box: str
    interface: PlainName | None = None
    address: Address | None = None
    devices: tuple[PlainName, ...] = ()
    rate_gbit: float | None = None
    mtu: int | None = None
    gid_indices: tuple[int, ...] = ()


class Link(Record, frozen=True):
    """What connects the boxes. `kind` is what their facts allow, not what NCCL will have chosen: its log tells that."""

    kind: LinkKind
    because: str
    ranks: tuple[RankLink, ...]


class RankAsk(Record, frozen=True):
    """What the head tells a box of its part: its rank and the sizes. What is started, the box's own stoker.toml says."""

    service: str
    rank: Annotated[int, msgspec.Meta(ge=1, le=63)]
    tensor: Size
    pipeline: Size
    link: Link

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return self.tensor * self.pipeline


class Part(Record, frozen=True):
    """A rank of a plan that another box runs."""

    box: str
    ask: RankAsk


class Ray(Record, frozen=True):
    """The words that start a plan's part of a Ray cluster; `address` is where its head is reached.

    A worker's box runs nothing else. On the head they run beside the engine, which starts its processes on all boxes by it.
    """

    words: tuple[str, ...]
    address: str


class Seat(Record, frozen=True):
    """The place of a plan that is a rank of another box's: `head` is the link that asked, `launch` which of its starts."""

    rank: int
    size: int
    head: str
    launch: str
    has_rdma: bool = False
