"""Reads which ports are taken, and by whom where the kernel tells us."""

from __future__ import annotations

import contextlib
import socket

import psutil

from stoker.facts.machine.processes import read_process_name
from stoker.records import Listener


def is_port_free(host: str, port: int) -> bool:
    """Tells whether a server could listen there now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def pick_free_port(host: str) -> int:
    """Returns a port that nobody listens on at this moment."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def read_listeners() -> tuple[Listener, ...]:
    """Returns all TCP ports that somebody listens on, by number; a port on two addresses is two of them."""
    found: set[tuple[int, str, int | None]] = set()
    with contextlib.suppress(psutil.Error, OSError):
        for one in psutil.net_connections("tcp"):
            if one.laddr and one.status == psutil.CONN_LISTEN:
                found.add((one.laddr[1], one.laddr[0], one.pid))
    return tuple(
        Listener(host, port, pid, read_process_name(pid))
        for port, host, pid in sorted(found, key=lambda one: (*one[:2], one[2] or 0))
    )


def read_listener(port: int) -> str | None:
    """Returns who listens on a port as 'name (pid N)', or None where we may not know."""
    known = (one for one in read_listeners() if one.port == port and one.name)
    return next((f"{one.name} (pid {one.pid})" for one in known), None)
