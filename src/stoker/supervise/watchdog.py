"""Judges whether an engine eats what has to stay free. Pure: samples of the memory in, a reason to stop out.

A launch is stopped before the floor is reached: once it has taken more than it claimed and would cross the floor within the
time that ending it takes. What stays within its claim is let be, however fast: the gate has seen to its room. An engine
that serves is given longer, since a neighbour's short peak is not worth cutting its answers for.
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from statistics import median_low
from typing import NamedTuple

from stoker.records import Memory, say_bytes

# From a sample to the last page that an engine takes: a walk over /proc and the kernel's kill. The longest of the last
# pauses between two samples comes on top, since a machine that is short of memory lets its daemon wait too.
REACTION_S = 0.25
STEPS = 5
LEAST_STEP_S = 0.001  # two looks at one moment say nothing of a rate
SERVING_HOLD_S = 2.0
# Half of the floor is the last that the kernel and the user's shell live on: below, nothing is waited for.
LAST_SHARE = 0.5
NEAR_FLOORS = 4
STALL_PCT, STALL_HOLD_S = 40.0, 5.0


class Launch(NamedTuple):
    """What was available before an engine was started, and how much it was to take."""

    before_bytes: int
    claim_bytes: int


class Watchdog:
    """Judges one engine's samples; remembers the last moments, to tell how fast memory goes and since when it is low."""

    def __init__(self, floor_bytes: int) -> None:
        self._floor_bytes = floor_bytes
        self._recent: deque[tuple[float, int]] = deque(maxlen=STEPS + 1)
        self._low_since_s: float | None = None
        self._stalled_since_s: float | None = None

    def judge_launch(self, at_s: float, memory: Memory, launch: Launch) -> str | None:
        """Returns why a launch has to be stopped now, or None."""
        available_bytes = memory.available_bytes
        taken_bytes = launch.before_bytes - available_bytes
        soon_bytes = self._soon_bytes(at_s, available_bytes)
        if available_bytes < self._floor_bytes:
            return f"{self._low(available_bytes)}; {_taken(taken_bytes, launch)}"
        if taken_bytes > launch.claim_bytes and available_bytes - soon_bytes < self._floor_bytes:
            return f"{say_bytes(available_bytes)} are available and going fast; {_taken(taken_bytes, launch)}"
        return self._stall(at_s, memory)

    def is_near(self, memory: Memory) -> bool:
        """Tells whether so little is left that it has to be looked at more often."""
        return memory.available_bytes < NEAR_FLOORS * self._floor_bytes

    def judge_serving(self, at_s: float, memory: Memory, launch: Launch) -> str | None:
        """Returns why an engine that serves has to be stopped now, or None."""
        available_bytes = memory.available_bytes
        if why := self._leak(at_s, available_bytes, launch):
            return why
        if available_bytes >= self._floor_bytes:
            self._low_since_s = None
            return self._stall(at_s, memory)
        since_s = self._low_since_s = at_s if self._low_since_s is None else self._low_since_s
        if available_bytes < self._floor_bytes * LAST_SHARE or at_s - since_s >= SERVING_HOLD_S:
            return self._low(available_bytes)
        return None

    def _leak(self, at_s: float, available_bytes: int, launch: Launch) -> str | None:
        """What grows beyond its claim while it serves is no neighbour's peak: it is stopped before the floor."""
        taken_bytes = launch.before_bytes - available_bytes
        soon_bytes = self._soon_bytes(at_s, available_bytes)
        if taken_bytes <= launch.claim_bytes or not 0 <= available_bytes - self._floor_bytes < soon_bytes:
            return None
        return f"{say_bytes(available_bytes)} are available and going; {_taken(taken_bytes, launch)}"

    def _soon_bytes(self, at_s: float, available_bytes: int) -> int:
        """Returns what would be taken before an end that begins now has its effect.

        The rate is the median of the last steps, since one block that is taken at once is no trend.
        """
        self._recent.append((at_s, available_bytes))
        steps = [
            (to_s - from_s, was - now)
            for (from_s, was), (to_s, now) in pairwise(self._recent)
            if to_s > from_s + LEAST_STEP_S
        ]
        if not steps:
            return 0
        bytes_per_s = median_low(taken_bytes / step_s for step_s, taken_bytes in steps)
        return max(0, int(bytes_per_s * (REACTION_S + max(step_s for step_s, _ in steps))))

    def _stall(self, at_s: float, memory: Memory) -> str | None:
        """Everything on the machine waits for memory, and little of it is left: it freezes if nobody acts."""
        stalled = (memory.full_stall_pct or 0.0) >= STALL_PCT and memory.available_bytes < 2 * self._floor_bytes
        if not stalled:
            self._stalled_since_s = None
            return None
        since_s = self._stalled_since_s = at_s if self._stalled_since_s is None else self._stalled_since_s
        if at_s - since_s < STALL_HOLD_S:
            return None
        return f"all programs waited for memory {memory.full_stall_pct:.0f} % of the last 10 s (memory pressure, full)"

    def _low(self, available_bytes: int) -> str:
        return (
            f"{say_bytes(available_bytes)} are available, less than the {say_bytes(self._floor_bytes)} kept for the system"
        )


def _taken(taken_bytes: int, launch: Launch) -> str:
    return f"{say_bytes(max(0, taken_bytes))} were taken since its start, {say_bytes(launch.claim_bytes)} were planned"
