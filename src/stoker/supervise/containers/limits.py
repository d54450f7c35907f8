"""Keeps a container's limits to what its engine may give: one without root's rights fails where it is to raise them.

Trying first and starting again without them does not work: podman 4.3 keeps the port of a start that failed.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from pathlib import Path

CAP_SYS_RESOURCE = 24  # the right to raise limits
EVERYBODY = ["0", "0", "4294967295"]  # the user namespace of the machine itself
CREDENTIALS = struct.Struct("3i")
UNLIMITED = -1
NAMES = {
    "nofile": "Max open files", "memlock": "Max locked memory", "stack": "Max stack size", "nproc": "Max processes",
}  # fmt: skip


def cap_ulimits(ulimits: tuple[tuple[str, int], ...], hard: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Returns the limits, none above the hard one of its name; -1 is no limit.

    Podman has limits of its own for files and processes, and raises to them whatever it is not told.
    """
    untold = {name: hard[name] for name in ("nofile", "nproc") if name in hard}
    return tuple((name, _least(value, hard.get(name, UNLIMITED))) for name, value in {**untold, **dict(ulimits)}.items())


def _least(value: int, hard: int) -> int:
    return min((one for one in (value, hard) if one != UNLIMITED), default=UNLIMITED)


def read_hard_limits(path: str) -> dict[str, int]:
    """Returns the limits that the engine behind a socket cannot raise; none where it may raise all, or nobody can tell."""
    try:
        folder = Path(f"/proc/{_read_peer(path)}")
        if _may_raise((folder / "status").read_text(), (folder / "uid_map").read_text()):
            return {}
        return parse_limits((folder / "limits").read_text())
    except (OSError, ValueError):
        return {}


def _read_peer(path: str) -> int:
    """Returns the process that listens on a socket: the engine's, or systemd's where that keeps the socket for it."""
    with socket.socket(socket.AF_UNIX) as ours:
        ours.connect(path)
        pid, _, _ = CREDENTIALS.unpack(ours.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))
    return int(pid)


def _may_raise(status: str, uid_map: str) -> bool:
    rights = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(rights >> CAP_SYS_RESOURCE & 1) and uid_map.split() == EVERYBODY


def parse_limits(text: str) -> dict[str, int]:
    """Returns the hard limits in the text of a /proc/PID/limits."""
    found = {}
    for name, title in NAMES.items():
        line = next(line for line in text.splitlines() if line.startswith(title))
        hard = line.removeprefix(title).split()[1]
        found[name] = UNLIMITED if hard == "unlimited" else int(hard)
    return found
