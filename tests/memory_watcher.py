"""Looks all the time at what engines hold, in a process of its own, so that nobody's Python keeps it from looking.

Called with the machine's bytes and a file of pids. At each line on its input it says the least that was available since
the last one, and the longest pause between two looks, which tells how busy others kept the cores.
"""

from __future__ import annotations

import mmap
import select
import sys
import time
from pathlib import Path

PAUSE_S = 0.002


def resident_bytes(pid: str) -> int:
    """Returns what a process holds; 0 once it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * mmap.PAGESIZE
    except (OSError, IndexError):
        return 0


def available_bytes(total_bytes: int, pids: Path) -> int:
    """Returns what those processes leave."""
    return total_bytes - sum(resident_bytes(pid) for pid in pids.read_text().split())


def main() -> None:
    """Looks until its input ends."""
    total_bytes, pids = int(sys.argv[1]), Path(sys.argv[2])
    low_bytes, longest_s, looked_s = total_bytes, 0.0, time.monotonic()
    while True:
        if select.select([sys.stdin], [], [], PAUSE_S)[0]:
            if not sys.stdin.readline():
                return
            print(low_bytes, longest_s, flush=True)
            low_bytes, longest_s = total_bytes, 0.0
        low_bytes = min(low_bytes, available_bytes(total_bytes, pids))
        longest_s, looked_s = max(longest_s, time.monotonic() - looked_s), time.monotonic()


if __name__ == "__main__":
    main()
