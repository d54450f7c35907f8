"""A straight line through the last looks at a figure, and when it would reach a limit. Pure."""

from __future__ import annotations

from collections import deque


class Trend:
    """Keeps a look every `step_s` for `window_s`, and nothing of what lies between."""

    def __init__(self, window_s: float, step_s: float) -> None:
        self._window_s, self._step_s = window_s, step_s
        self._seen: deque[tuple[float, float]] = deque(maxlen=int(window_s / step_s) + 1)

    def take(self, at_s: float, value: float) -> None:
        """Takes a look; looks that follow each other too closely are left out, and a gap begins anew."""
        if self._seen and at_s - self._seen[-1][0] > self._window_s / 2:
            self._seen.clear()
        if not self._seen or at_s - self._seen[-1][0] >= self._step_s:
            self._seen.append((at_s, value))

    @property
    def is_known(self) -> bool:
        """Tells whether the window is full enough for a line: two thirds of it."""
        return len(self._seen) > 2 and self._seen[-1][0] - self._seen[0][0] >= self._window_s * 2 / 3

    @property
    def least(self) -> float | None:
        """The least value in the window."""
        return min((value for _, value in self._seen), default=None)

    def slope_per_s(self) -> float:
        """Returns the slope of the line of least squares; 0 where there is none."""
        count = len(self._seen)
        mean_s = sum(at_s for at_s, _ in self._seen) / max(1, count)
        mean = sum(value for _, value in self._seen) / max(1, count)
        spread = sum((at_s - mean_s) ** 2 for at_s, _ in self._seen)
        return sum((at_s - mean_s) * (value - mean) for at_s, value in self._seen) / spread if spread else 0.0

    def reaches_in_s(self, limit: float) -> float | None:
        """Returns in how many seconds a falling line reaches a limit; None where it does not, or is not known yet."""
        slope = self.slope_per_s()
        if not self.is_known or slope >= 0:
            return None
        return max(0.0, (self._seen[-1][1] - limit) / -slope)
