"""Judges the disks that matter: nearly full, or full within a day. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from stoker.records import say_bytes, say_s
from stoker.watch.table import Looked, threshold
from stoker.watch.trend import Trend

LEAST_BYTES = 2 * 1024**3
TREND_S, STEP_S, DAY_S = 6 * 3600.0, 600.0, 86400.0


class DisksCheck:
    """Remembers six hours of each disk."""

    def __init__(self) -> None:
        self._free: dict[str, Trend] = {}

    def look(self, at_s: float, disks: Iterable[tuple[str, int, int]]) -> Looked:
        """Returns what is wrong with disks, given by what they hold, their free and their whole size in bytes."""
        looked: Looked = {}
        for holds, free_bytes, total_bytes in disks:
            trend = self._free.setdefault(holds, Trend(TREND_S, STEP_S))
            trend.take(at_s, free_bytes)
            is_full = free_bytes < LEAST_BYTES or free_bytes < threshold("disk-full") * total_bytes
            left_s = trend.reaches_in_s(0)
            full = f"{say_bytes(free_bytes)} of {say_bytes(total_bytes)} are free"
            looked["disk-full", holds] = full if is_full else None
            fills = left_s is not None and left_s < DAY_S
            fill_up = f"{full}, and none is in {say_s(left_s or 0.0)} if it goes on like this"
            looked["disk-trend", holds] = fill_up if fills else None
        return looked
