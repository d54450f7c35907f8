"""What the disk could give and what a load took of it: measured before a start, said after it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from stoker.facts.machine.read_rate import LARGE_BYTES, measure_file
from stoker.records import MIB, LoadRate, ReadRate, say_bytes

PROBE_BYTES = 256 * MIB
PROBE_S = 1.0
LEAST_S = 1.0  # below it a rate says more about the clock than about the disk
LOADER_IS_SLOW = 0.5


def measure_weights(files: Iterable[Path]) -> ReadRate | None:
    """Returns how fast the disk gives the largest file, read for a second at most; None where that cannot be told.

    It is read from its middle on: its head was just read by the plan, and may lie in the cache of a disk or of a hypervisor.
    It waits for the disk, so it belongs into a thread.
    """
    try:
        size, largest = max(((file.stat().st_size, file) for file in files), default=(0, None))
        if largest is None or size < LARGE_BYTES:
            return None
        rate = measure_file(largest, PROBE_BYTES, PROBE_S, from_bytes=size // 2)
    except OSError:
        return None
    return rate if rate.read_bytes else None


def say_load(load: LoadRate) -> str:
    """Returns what a load took and how that compares with the disk: 'loaded ... at 25 % of what the disk can'."""
    if load.seconds < LEAST_S:
        return f"loaded {say_bytes(load.weights_bytes)} in less than a second"
    rate = load.weights_bytes / load.seconds
    took = f"loaded {say_bytes(load.weights_bytes)} in {load.seconds:.0f} s, {_say_rate(rate)}"
    if not load.disk_bytes_per_s:
        return f"{took}; what the disk can is unknown"
    disk, share = _say_rate(load.disk_bytes_per_s), rate / load.disk_bytes_per_s
    if share > 1:
        return f"{took}: faster than the disk was before ({disk}), so part of it was in memory already or read in parallel"
    said = f"{took}: {share:.0%} of what the disk can ({disk})".replace("%", " %", 1)
    if share < LOADER_IS_SLOW:
        return f"{said}; the loader takes the time, not the disk: `stoker rules --search loader` tells of faster ones"
    return said


def _say_rate(bytes_per_s: float) -> str:
    return f"{bytes_per_s / 1e9:.1f} GB/s" if bytes_per_s >= 1e9 else f"{bytes_per_s / 1e6:.0f} MB/s"
