"""What connects the boxes, from what the kernels of both ends say of their ports. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from stoker.records import Machine
from stoker.records.machine import NetworkPort
from stoker.records.ranks import Link, RankLink

SLOWEST_RDMA_GBIT = 25.0
PREFIX = 24  # of the two addresses of a direct cable: recipes use /24, /30 and link-local /16


class Place(NamedTuple):
    """Where a box is reached by the others: the interface and the IPv4 address it has there."""

    interface: str
    address: str


def with_places(link: Link, places: Sequence[Place]) -> Link:
    """Returns the link with the boxes' places where they have no RDMA; one that has it keeps the addresses of its ports."""
    if link.kind == "rdma" or not places:
        return link
    ranks = tuple(RankLink(rank.box, place.interface, place.address) for rank, place in zip(link.ranks, places, strict=True))
    return msgspec.structs.replace(link, ranks=ranks)


def link_of(names: Sequence[str], machines: Sequence[Machine]) -> Link:
    """Returns the link between boxes: RDMA where each has a port that is up, with an address near those of the others."""
    ports = [_usable(machine) for machine in machines]
    ranks = tuple(_rank(name, own, ports) for name, own in zip(names, ports, strict=True))
    silent = [name for name, machine in zip(names, machines, strict=True) if machine.ports is None]
    if silent:
        return Link("unknown", f"nothing is known of the ports of {', '.join(silent)}", ranks)
    without = [rank.box for rank in ranks if not rank.devices]
    if without:
        return Link("sockets", f"no port for RDMA is up with an address on {', '.join(without)}", ranks)
    rate = min(rank.rate_gbit or 0.0 for rank in ranks)
    if rate and rate < SLOWEST_RDMA_GBIT:
        return Link("sockets", f"the slowest port runs at {rate:g} Gb/s", ranks)
    return Link(
        "rdma", "each box has a port for RDMA that is up, with an address; NCCL's log tells whether it is used", ranks
    )


def _usable(machine: Machine) -> tuple[NetworkPort, ...]:
    return tuple(port for port in machine.ports or () if port.is_up and port.address is not None)


def _rank(name: str, own: tuple[NetworkPort, ...], everybodys: Sequence[tuple[NetworkPort, ...]]) -> RankLink:
    """A box's side: the ports whose subnet all boxes have a port in, or all that are up where none has.

    In the order of their subnets, so that the first of each box can reach each other.
    """
    shared = tuple(port for port in own if all(any(_near(port, other) for other in others) for others in everybodys))
    used = sorted(shared or own, key=lambda port: (int(_subnet(port).network_address), port.device))
    if not used:
        return RankLink(name)
    first = used[0]
    rates, sizes = [port.rate_gbit for port in used], [port.mtu for port in used]
    return RankLink(
        name, first.interface, first.address, tuple(port.device for port in used),
        rate_gbit=min((rate for rate in rates if rate is not None), default=None),
        mtu=min((size for size in sizes if size is not None), default=None),
        gid_indices=tuple(port.gid_index for port in used if port.gid_index is not None),
    )  # fmt: skip


def _near(one: NetworkPort, other: NetworkPort) -> bool:
    return _subnet(one) == _subnet(other)


def _subnet(port: NetworkPort) -> ipaddress.IPv4Network:
    address = ipaddress.IPv4Address(port.address or "0.0.0.0")
    return ipaddress.IPv4Network((address, 16 if address.is_link_local else PREFIX), strict=False)
