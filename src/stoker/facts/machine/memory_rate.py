"""Measures how fast the processor reads its memory, which bounds what an engine on the processor can give.

Threads search for a byte that is not there, with the C library's own `memchr`: it reads and computes next to nothing, and
ctypes lets the threads run beside each other. It is bounded in bytes and in time, and the best pass counts, since others
only take away from it.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import time
from concurrent.futures import ThreadPoolExecutor

from stoker.records import GIB, MIB

MOST_BYTES = GIB  # beyond the caches of today's processors
LEAST_BYTES = 128 * MIB
SHARE_OF_FREE = 4
LIMIT_S = 0.5
ABSENT = 0x02


def measure_memory_rate(free_bytes: int, limit_s: float = LIMIT_S) -> int | None:
    """Returns the bytes a second that all processors together read; None where too little memory is free to tell."""
    size = min(MOST_BYTES, free_bytes // SHARE_OF_FREE)
    if size < LEAST_BYTES:
        return None
    parts = len(os.sched_getaffinity(0))
    share = size // parts
    with mmap.mmap(-1, share * parts, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as block:
        start = ctypes.addressof(first := ctypes.c_char.from_buffer(block))
        try:
            with ThreadPoolExecutor(parts) as threads:
                return _best_rate(threads, [start + index * share for index in range(parts)], share, limit_s)
        finally:
            del first  # else the block could not be given back


def _best_rate(threads: ThreadPoolExecutor, places: list[int], share: int, limit_s: float) -> int:
    """Fills the parts, since untouched pages are all the same page of zeros, and reads them until the time is over."""
    search = ctypes.CDLL(None).memchr
    search.argtypes, search.restype = (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t), ctypes.c_void_p
    fill = ctypes.memset
    list(threads.map(lambda place: fill(place, 1, share), places))
    best, began = 0.0, time.perf_counter()
    while not best or time.perf_counter() - began < limit_s:
        pass_began = time.perf_counter()
        list(threads.map(lambda place: search(place, ABSENT, share), places))
        best = max(best, share * len(places) / (time.perf_counter() - pass_began))
    return int(best)
