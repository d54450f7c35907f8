"""Reads which ports are taken, and by whom where the kernel tells us."""

from __future__ import annotations

import contextlib
import socket

import psutil


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


def read_listener(port: int) -> str | None:
    """Returns who listens on a port as 'name (pid N)', or None where we may not know."""
    with contextlib.suppress(psutil.Error, OSError):
        for connection in psutil.net_connections("tcp"):
            if (
                connection.laddr
                and connection.status == psutil.CONN_LISTEN
                and connection.laddr[1] == port
                and connection.pid
            ):
                return f"{psutil.Process(connection.pid).name()} (pid {connection.pid})"
    return None
