"""Tells an engine that is stuck from one that takes its time: requests run, and nothing of it moves any more. Pure."""

from __future__ import annotations


class FreezeCheck:
    """Remembers what an engine showed last, and since when it shows nothing else.

    Neither a silent request (one that is not streamed is silent until its end) nor still counters (llama.cpp counts some
    tokens only when a request ends) are enough by themselves: both together are.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._last: object = None
        self._since_s = 0.0
        self._is_busy = False

    def judge(self, at_s: float, requests: int, shown: object) -> str | None:
        """Returns why the engine is taken for frozen, or None; `shown` is anything that changes while it works."""
        was_busy, self._is_busy = self._is_busy, requests > 0
        if not (self._is_busy and was_busy) or shown != self._last:
            self._last, self._since_s = shown, at_s
            return None
        silent_s = at_s - self._since_s
        if silent_s < self._limit_s:
            return None
        return f"{requests} requests run, and for {silent_s:.0f} s no token, no byte and no counter moved (frozen_s)"
