"""A limit on how often: so many at once, and as many again in each period, evenly."""

from __future__ import annotations

import math

ROUNDING_S = 1e-6


class Bucket:
    """The generic cell rate algorithm: one number to keep, and the exact time at which the next one may go."""

    def __init__(self, most: int, period_s: float) -> None:
        self._step_s = period_s / most
        self._ahead_s = period_s - self._step_s
        self._paid_until = -math.inf

    def wait_s(self, now: float) -> float:
        """Returns how long the next one has to wait; 0.0: it may go."""
        wait_s = self._paid_until - now - self._ahead_s
        return wait_s if wait_s > ROUNDING_S else 0.0

    def take(self, now: float) -> float:
        """Lets one go and returns 0.0, or returns how long it has to wait."""
        wait_s = self.wait_s(now)
        if not wait_s:
            self._paid_until = max(self._paid_until, now) + self._step_s
        return wait_s

    def is_full(self, now: float) -> bool:
        """Tells whether nothing of it is in use."""
        return self._paid_until <= now
