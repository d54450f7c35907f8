"""Tells systemd that the daemon listens, where systemd started it; without systemd nothing happens."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping


def tell_ready(environment: Mapping[str, str] = os.environ) -> bool:
    """Sends READY=1 to the socket that `NOTIFY_SOCKET` names; returns whether anybody was told.

    The protocol is that of sd_notify(3): one datagram, a name with `@` in front is an abstract one.
    """
    name = environment.get("NOTIFY_SOCKET", "")
    if not name.startswith(("/", "@")):
        return False
    address = f"\0{name[1:]}" if name.startswith("@") else name
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        try:
            sender.connect(address)
            sender.sendall(b"READY=1")
        except OSError:  # it is systemd's to notice that nobody told it
            return False
    return True
