"""Ends requests whose engine says nothing for too long; one timer looks at all of them."""

from __future__ import annotations

import asyncio
from typing import Protocol

LOOKS = 10  # within the limit; a timer of its own for each request would be made and cancelled for nothing
LONGEST_PAUSE_S = 1.0


class Speaker(Protocol):
    """A request under way to an engine."""

    def heard_at(self) -> float:
        """Returns when its engine last said something, on the event loop's clock; as exactly as this is asked often."""

    def end_silent(self) -> None:
        """Ends it, since its engine was silent for too long."""


class Silence:
    """Watches requests to engines; `limit_s` is how long one may hear nothing."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._loop = asyncio.get_running_loop()
        self._pause_s = min(LONGEST_PAUSE_S, limit_s / LOOKS)
        self._speakers: set[Speaker] = set()
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, speaker: Speaker) -> None:
        """Watches one from now on."""
        self._speakers.add(speaker)
        if self._timer is None:
            self._timer = self._loop.call_later(self._pause_s, self._look)

    def forget(self, speaker: Speaker) -> None:
        """Watches one no longer."""
        self._speakers.discard(speaker)

    def _look(self) -> None:
        oldest = self._loop.time() - self.limit_s
        for speaker in [one for one in self._speakers if one.heard_at() <= oldest]:
            self.forget(speaker)
            speaker.end_silent()
        self._timer = self._loop.call_later(self._pause_s, self._look) if self._speakers else None
