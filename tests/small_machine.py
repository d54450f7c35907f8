"""A machine whose memory only the processes named in a file take, so that no other program disturbs a test."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from pathlib import Path

from stoker.records import Endpoint, KeptVerification, Memory, Plan


class SmallMachine:
    """Counts its memory as its size less what those processes hold; `others_bytes` is what other programs take.

    With `keeps` nothing comes back when a process ends. `anonymous_bytes` is what the kernel says that processes hold.
    """

    def __init__(self, pids: Path, total_bytes: int) -> None:
        self.pids = pids
        self.total_bytes = total_bytes
        self.low_bytes = total_bytes
        self.keeps = False
        self.others_bytes = 0
        self.anonymous_bytes: int | None = None
        self._held: dict[str, int] = {}
        pids.touch()

    def read(self) -> Memory:
        """Counts what those processes hold."""
        for pid in self.pids.read_text().split():
            held_bytes = read_resident(pid)
            self._held[pid] = max(held_bytes, self._held.get(pid, 0)) if self.keeps else held_bytes
        available_bytes = self.total_bytes - self.others_bytes - sum(self._held.values())
        self.low_bytes = min(self.low_bytes, available_bytes)
        return Memory(self.total_bytes, available_bytes, available_bytes, 0, 0, 0, anonymous_bytes=self.anonymous_bytes)


class NoGate:
    """Stands for the gate where no plan has one."""

    async def play(self, plan: Plan, endpoint: Endpoint, say: Callable[[str], None]) -> KeptVerification:
        """Fails: nothing is to be asked."""
        raise AssertionError(f"{plan.service} has a gate: {plan.gate}")

    def keep(self, kept: KeptVerification) -> None:
        """Fails: nothing was asked."""
        raise AssertionError(kept)


def read_resident(pid: str) -> int:
    """Returns the resident bytes of a process, 0 where it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * mmap.PAGESIZE
    except (OSError, IndexError):
        return 0
