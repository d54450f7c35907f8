"""The processes of an engine that somebody else started: told by kinship, since none of them carries a marker of ours."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Iterable, Mapping

import psutil

from stoker.supervise.process import POLL_S, read_start_ticks, signal_all


class Tree:
    """An engine's first process, its descendants, and its session and process group where it leads them.

    `known` are all that were ever seen, each with its start time: one whose parent has died is found again only so. A
    session or a group that another process leads, such as the shell of a login, is never taken for the engine's.
    """

    def __init__(self, leader: int, start_ticks: int, known: Mapping[int, int]) -> None:
        self.leader = leader
        self._ticks = start_ticks
        self.known = dict(known)

    def look(self) -> None:
        """Adds what belongs to the engine now; nothing once its first process is gone, whose pid may be another's then."""
        if read_start_ticks(self.leader) != self._ticks:
            return
        found = {pid: ticks for pid in self._find() if (ticks := read_start_ticks(pid)) is not None}
        if read_start_ticks(self.leader) == self._ticks:  # all that time it was still the engine's
            self.known.update(found)

    def _find(self) -> set[int]:
        found = {self.leader}
        with contextlib.suppress(psutil.Error):
            found |= {child.pid for child in psutil.Process(self.leader).children(recursive=True)}
        for pid in psutil.pids():
            with contextlib.suppress(OSError):
                if self.leader in (os.getsid(pid), os.getpgid(pid)):
                    found.add(pid)
        return found

    def holds(self, pid: int) -> bool:
        """Tells whether a process is one of those that were seen."""
        ticks = read_start_ticks(pid)
        return ticks is not None and self.known.get(pid) == ticks

    def pids(self) -> list[int]:
        """Returns the living processes."""
        return sorted(pid for pid in list(self.known) if self.holds(pid))  # a thread may ask while another looks

    def members(self) -> tuple[tuple[int, int], ...]:
        """Returns the living processes with their start times."""
        return tuple((pid, self.known[pid]) for pid in self.pids())


async def stop_tree(tree: Tree, grace_s: float, kill_limit_s: float) -> list[int]:
    """Ends the processes of a tree: SIGTERM, after `grace_s` SIGKILL; returns the pids that outlived even that.

    SIGTERM for the first process alone, as its unit would: an engine ends its workers itself.
    """
    tree.look()
    first: Iterable[int] = [tree.leader] if tree.holds(tree.leader) else tree.pids()
    signal_all(first, signal.SIGTERM, tree.holds)
    await _await_gone(tree, grace_s, kill=False)
    await _await_gone(tree, kill_limit_s, kill=True)
    return tree.pids()


async def _await_gone(tree: Tree, limit_s: float, kill: bool) -> None:
    end = time.monotonic() + limit_s
    while left := tree.pids():
        if time.monotonic() > end:
            return
        if kill:
            tree.look()
            signal_all(left, signal.SIGKILL, tree.holds)
        await asyncio.sleep(POLL_S)
