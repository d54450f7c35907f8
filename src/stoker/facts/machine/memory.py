"""Reads the machine's memory, and who holds it.

MemAvailable is the truth for a start: on GB10 `nvidia-smi` answers [N/A], since there is no separate memory to ask about.
"""

from __future__ import annotations

import re

import psutil

from stoker.box import Box
from stoker.errors import StokerError
from stoker.records import Memory, MemoryHolder

HOLDER_AT_LEAST_BYTES = 64 * 1024**2


def read_memory(box: Box) -> Memory:
    """Returns the machine's memory; raises StokerError where /proc/meminfo lacks what every Linux since 3.14 has."""
    text = box.read("/proc/meminfo") or ""
    kib = {name: int(value) for name, value in re.findall(r"^(\w+):\s+(\d+) kB$", text, re.MULTILINE)}
    if not {"MemTotal", "MemAvailable", "MemFree"} <= kib.keys():
        raise StokerError(
            "the machine's memory is unknown",
            why="/proc/meminfo does not give MemTotal, MemAvailable and MemFree",
            next_step="run Stoker on Linux with /proc mounted",
        )
    return Memory(
        total_bytes=kib["MemTotal"] * 1024,
        available_bytes=kib["MemAvailable"] * 1024,
        free_bytes=kib["MemFree"] * 1024,
        page_cache_bytes=(kib.get("Cached", 0) + kib.get("Buffers", 0)) * 1024,
        swap_total_bytes=kib.get("SwapTotal", 0) * 1024,
        swap_free_bytes=kib.get("SwapFree", 0) * 1024,
        full_stall_pct=_read_full_stall(box),
        anonymous_bytes=(kib["AnonPages"] + kib["Shmem"]) * 1024 if {"AnonPages", "Shmem"} <= kib.keys() else None,
    )


def _read_full_stall(box: Box) -> float | None:
    found = re.search(r"^full avg10=([\d.]+)", box.read("/proc/pressure/memory") or "", re.MULTILINE)
    return float(found[1]) if found else None


def read_holders(count: int = 3) -> list[MemoryHolder]:
    """Returns the processes that hold most resident memory, the largest first, without the very small."""
    holders = [
        MemoryHolder(process.pid, process.info["name"] or "?", process.info["memory_info"].rss)
        for process in psutil.process_iter(["name", "memory_info"])
        if process.info["memory_info"] is not None
    ]
    large = [holder for holder in holders if holder.resident_bytes >= HOLDER_AT_LEAST_BYTES]
    return sorted(large, key=lambda holder: -holder.resident_bytes)[:count]
