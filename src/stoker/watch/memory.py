"""Judges the machine's memory: what is left, where it goes, and whether starts find less each time. Pure."""

from __future__ import annotations

from collections import defaultdict, deque
from itertools import pairwise

from stoker.records import MIB, Memory, say_bytes, say_s
from stoker.watch.table import Looked, threshold
from stoker.watch.trend import Trend

TREND_S, TREND_STEP_S = 1800.0, 60.0
SWAP_S = 900.0
SOON_S = 7200.0
STARTS = 3
NOISE_BYTES = 256 * MIB  # the same number stands in the alert's `expr`


class MemoryCheck:
    """Remembers half an hour of the memory, and what the last starts of each service found free."""

    def __init__(self, floor_bytes: int) -> None:
        self._floor_bytes = floor_bytes
        self._available = Trend(TREND_S, TREND_STEP_S)
        self._swapped = Trend(SWAP_S, TREND_STEP_S)
        self._found: defaultdict[str, deque[int]] = defaultdict(lambda: deque(maxlen=STARTS + 1))
        self._launches: dict[str, int] = {}

    def look(self, at_s: float, memory: Memory, is_waited_for: bool) -> Looked:
        """Returns what is wrong; `is_waited_for` tells whether a start waits for memory."""
        swapped_bytes = memory.swap_total_bytes - memory.swap_free_bytes
        self._available.take(at_s, memory.available_bytes)
        self._swapped.take(at_s, swapped_bytes)
        return {
            ("memory-floor", ""): self._judge_floor(memory),
            ("memory-trend", ""): self._judge_trend(memory),
            ("memory-stalled", ""): _judge_stall(memory),
            ("swap-grows", ""): self._judge_swap(swapped_bytes),
            ("page-cache-in-the-way", ""): _judge_cache(memory) if is_waited_for else None,
        }

    def look_at_start(self, service: str, launch: int, before_bytes: int, total_bytes: int) -> Looked:
        """Returns whether each of the last starts of a service found less memory than the one before."""
        if self._launches.get(service) != launch:
            self._launches[service] = launch
            self._found[service].append(before_bytes)
        found = list(self._found[service])
        lost_bytes = found[0] - found[-1]
        falls = len(found) > STARTS and all(was > now for was, now in pairwise(found))
        if not falls or lost_bytes < threshold("memory-not-given-back") * total_bytes:
            return {("memory-not-given-back", service): None}
        why = f"the last {len(found)} starts found {', '.join(map(say_bytes, found))} free"
        return {("memory-not-given-back", service): why}

    def _judge_floor(self, memory: Memory) -> str | None:
        if memory.available_bytes >= self._floor_bytes:
            return None
        return f"{say_bytes(memory.available_bytes)} are available, {say_bytes(self._floor_bytes)} are to stay free"

    def _judge_trend(self, memory: Memory) -> str | None:
        left_s = self._available.reaches_in_s(self._floor_bytes)
        slope = -self._available.slope_per_s()
        if left_s is None or left_s > SOON_S or slope < threshold("memory-trend"):
            return None
        return (
            f"{say_bytes(memory.available_bytes)} are available and {say_bytes(int(slope * 60))} go each minute:"
            f" the floor is reached in {say_s(left_s)}"
        )

    def _judge_swap(self, swapped_bytes: int) -> str | None:
        grew_bytes = swapped_bytes - (self._swapped.least or 0.0)
        if grew_bytes < threshold("swap-grows"):
            return None
        return f"{say_bytes(int(grew_bytes))} more are swapped out than a quarter of an hour ago"


def judge_holding(held_bytes: int | None, planned_bytes: int) -> str | None:
    """Returns how much more a service holds than its plan counted; None where that is noise, or either is unknown."""
    if held_bytes is None or not planned_bytes:
        return None
    if held_bytes <= threshold("memory-beyond-plan") * planned_bytes or held_bytes - planned_bytes <= NOISE_BYTES:
        return None
    return f"it holds {say_bytes(held_bytes)}, and its plan counted {say_bytes(planned_bytes)}"


def _judge_stall(memory: Memory) -> str | None:
    if memory.full_stall_pct is None or memory.full_stall_pct < threshold("memory-stalled") * 100:
        return None
    return f"for {memory.full_stall_pct:.0f} % of the last 10 s nothing ran for want of memory"


def _judge_cache(memory: Memory) -> str | None:
    if memory.page_cache_bytes < threshold("page-cache-in-the-way") * memory.total_bytes:
        return None
    return f"a start waits for memory, and the page cache holds {say_bytes(memory.page_cache_bytes)}"
