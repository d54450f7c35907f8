"""How much memory processes hold that would come back if they ended, for engines that were not started by Stoker."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

import msgspec
import psutil

from stoker.records import Handle

SHARED_OUT = ("Pss_Anon", "Pss_Shmem")
OWN = ("RssAnon", "RssShmem")


def read_resident(pids: Iterable[int]) -> int | None:
    """Returns the resident bytes of processes, or None where none of them is seen."""
    total: int | None = None
    for pid in pids:
        with contextlib.suppress(psutil.Error, OSError):
            total = (total or 0) + psutil.Process(pid).memory_info().rss
    return total


def read_held(pids: Iterable[int]) -> int:
    """Returns what would come back: no mapped files, which count as available all the while, and shared pages once."""
    return sum(_held(pid) for pid in pids)


def _held(pid: int) -> int:
    return _sum(f"/proc/{pid}/smaps_rollup", SHARED_OUT) or _sum(f"/proc/{pid}/status", OWN) or 0


def _sum(path: str, names: tuple[str, ...]) -> int | None:
    with contextlib.suppress(OSError):
        found = [
            line.split() for line in Path(path).read_text(errors="replace").splitlines() if line.partition(":")[0] in names
        ]
        return sum(int(words[1]) * 1024 for words in found)
    return None


def with_held(handle: Handle, pids: Iterable[int]) -> Handle:
    """Returns the handle of a launch whose memory was taken before it was looked at: as if that had been free then.

    It may take a second for a large engine, whose pages the kernel counts, so it belongs into a thread.
    """
    held_bytes = read_held(pids)
    return msgspec.structs.replace(
        handle, memory_before_bytes=handle.memory_before_bytes + held_bytes, memory_claim_bytes=held_bytes
    )
