"""Reads the ports that RDMA may go through: ConnectX-7 and its like, from what the kernel shows of them.

On a DGX Spark each of the two sockets of its ConnectX-7 shows up as two PCIe functions, so there are four devices.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Literal

from stoker.box import Box
from stoker.records.machine import NetworkPort

RDMA, NET = "/sys/class/infiniband", "/sys/class/net"
LAYERS: dict[str, Literal["ethernet", "infiniband"]] = {"ethernet": "ethernet", "infiniband": "infiniband"}
ROCE_2 = "RoCE v2"
MOST_GIDS = 16  # a table has 256 places, of which the addresses of an interface take the first few
MOST_PORTS = 64


def read_ports(box: Box) -> tuple[NetworkPort, ...]:
    """Returns all ports of all RDMA devices; none where the machine has no such device."""
    found = [(device, number) for device in box.names(RDMA) for number in _numbers(box, device)]
    return tuple(_read_port(box, device, number) for device, number in found[:MOST_PORTS])


def _numbers(box: Box, device: str) -> list[int]:
    return sorted(int(name) for name in box.names(f"{RDMA}/{device}/ports") if name.isdigit())


def _read_port(box: Box, device: str, number: int) -> NetworkPort:
    place = f"{RDMA}/{device}/ports/{number}"
    layer = LAYERS.get((_line(box, f"{place}/link_layer") or "").lower())
    gid_index, address, interface = _read_gid(box, place)
    interface = interface or _interface(box, device)
    state = _line(box, f"{place}/state")  # as in "4: ACTIVE"
    rate = re.match(r"(\d+(?:\.\d+)?) Gb/sec", _line(box, f"{place}/rate") or "")
    mtu = _line(box, f"{NET}/{interface}/mtu") if interface else None
    return NetworkPort(
        device=device, port=number, is_up=None if state is None else state.endswith("ACTIVE"), layer=layer,
        rate_gbit=float(rate[1]) if rate else None, interface=interface,
        mtu=int(mtu) if mtu and mtu.isdigit() else None, address=address, gid_index=gid_index,
        firmware=_line(box, f"{RDMA}/{device}/fw_ver"),
    )  # fmt: skip


def _read_gid(box: Box, place: str) -> tuple[int | None, str | None, str | None]:
    """The first RoCE v2 GID that carries an IPv4 address, with its index and interface; IPv6 is found in no recipe."""
    for index in range(MOST_GIDS):
        if _line(box, f"{place}/gid_attrs/types/{index}") != ROCE_2:
            continue
        try:
            mapped = ipaddress.IPv6Address(_line(box, f"{place}/gids/{index}") or "").ipv4_mapped
        except ValueError:
            continue
        if mapped is not None:
            return index, str(mapped), _line(box, f"{place}/gid_attrs/ndevs/{index}")
    return None, None, None


def _interface(box: Box, device: str) -> str | None:
    """The network device of the same PCIe function, as `ibdev2netdev` finds it where no address tells."""
    names = box.names(f"{RDMA}/{device}/device/net")
    return names[0] if names else None


def _line(box: Box, path: str) -> str | None:
    return (box.read(path) or "").strip() or None
