"""Finds the processes of an engine on this machine, and how much processor time they have taken.

Read from the kernel's own files: psutil lists every connection and every process for it, which took half a second of a short
measurement beside a server with thousands of closed connections.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from stoker.box import Box

LISTENS = "0A"  # as /proc/net/tcp writes it
SOCKET = re.compile(r"socket:\[(\d+)\]")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
USER, SYSTEM = 11, 12  # places in /proc/PID/stat after the name in brackets


def engine_seconds(box: Box, port: int) -> Callable[[], float | None]:
    """Returns what tells the processor time of who listens on a port, with its children; None where nobody may tell."""
    known: list[int | None] = []

    def seconds() -> float | None:
        if not known:
            known.append(find_listener(box, port))
        return None if known[0] is None else sum(_seconds(box, pid) for pid in _tree(box, known[0]))

    return seconds


def find_listener(box: Box, port: int) -> int | None:
    """Returns the process that listens on a port; None where there is none, or where it is not ours to see."""
    wanted = set(_listening(box, port))
    for name in box.names("/proc") if wanted else ():
        if name.isdigit() and wanted & set(_sockets(name)):
            return int(name)
    return None


def _listening(box: Box, port: int) -> Iterator[str]:
    """Yields the numbers of the sockets that listen on a port."""
    for table in ("tcp", "tcp6"):
        for line in (box.read(f"/proc/net/{table}") or "").splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                yield fields[9]


def _sockets(pid: str) -> Iterator[str]:
    """Yields the numbers of a process's sockets; none where it has ended, or is another user's."""
    try:
        links = [str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return
    yield from (found[1] for link in links if (found := SOCKET.fullmatch(link)))


def _tree(box: Box, pid: int) -> Iterator[int]:
    """Yields a process and all below it."""
    yield pid
    for thread in box.names(f"/proc/{pid}/task"):
        for child in (box.read(f"/proc/{pid}/task/{thread}/children") or "").split():
            yield from _tree(box, int(child))


def _seconds(box: Box, pid: int) -> float:
    fields = (box.read(f"/proc/{pid}/stat") or "").rpartition(")")[2].split()
    return (int(fields[USER]) + int(fields[SYSTEM])) / TICKS_PER_S if len(fields) > SYSTEM else 0.0
