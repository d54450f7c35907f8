"""Reads which ports are taken, and by whom where the kernel tells us."""

from __future__ import annotations

import contextlib
import random
import socket
from collections.abc import Iterator

import psutil

from stoker.box import Box, LocalBox
from stoker.facts.machine.processes import read_process_name
from stoker.records import Listener

LISTENS = "0A"  # as /proc/net/tcp writes it
GIVEN_AWAY = "/proc/sys/net/ipv4/ip_local_port_range"  # the ports that the kernel gives to whoever names none
USUAL_RANGE = "32768 60999"
# Below are programs of the user's, and Ray's workers; above there is no room for what SGLang counts from its port on.
FIRST_PORT, LAST_PORT = 20_000, 65_000
TRIES = 64


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


def pick_free_port(host: str, box: Box | None = None, but: int | None = None) -> int:
    """Returns a port that nobody listens on at this moment, not `but`, and that the kernel gives to nobody who names none.

    An engine may load for minutes before it listens. One of the kernel's own was seen to be given to another program
    within 17 s (SGLang 0.5.16 beside vLLM 0.26.0). It is taken only where the machine leaves no others.
    """
    known = [port for port in _list_kept(box or LocalBox()) if port != but]
    tried = random.sample(known, min(TRIES, len(known)))
    return next((port for port in tried if is_port_free(host, port)), 0) or _ask_kernel(host)


def _list_kept(box: Box) -> Iterator[int]:
    """Gives the ports that are for those who name them."""
    low, high = (int(word) for word in (box.read(GIVEN_AWAY) or USUAL_RANGE).split())
    yield from range(FIRST_PORT, min(low, LAST_PORT + 1))
    yield from range(max(high + 1, FIRST_PORT), LAST_PORT + 1)


def _ask_kernel(host: str) -> int:
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


def count_connections(box: Box, port: int) -> int:
    """Returns how many TCP connections a port of this machine has; one that ended counts for about a minute more.

    That is how long the kernel keeps it (TIME_WAIT), so that a look now and then sees short ones too. Read from the kernel's
    own table, which takes less than a millisecond, and not through psutil, which looks at every process for its files.
    """
    lines = [line for name in ("tcp", "tcp6") for line in (box.read(f"/proc/net/{name}") or "").splitlines()[1:]]
    return sum(_is_at(port, *line.split()[1:4]) for line in lines)


def _is_at(port: int, local: str, remote: str, state: str) -> bool:
    """Tells whether a row of the kernel's table is a connection to this port, seen from its side or from a client's."""
    number = f"{port:04X}"
    (here, at), (there, to) = local.rsplit(":", 1), remote.rsplit(":", 1)
    return state != LISTENS and (at == number or (to == number and here == there))
