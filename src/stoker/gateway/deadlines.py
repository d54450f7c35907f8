"""Ends what clients take too long for; one timer looks at all connections."""

from __future__ import annotations

import asyncio
from typing import NamedTuple, Protocol

LOOKS = 10  # within the shortest limit; a timer for every connection, and its end, cost more than parsing a request


class Limits(NamedTuple):
    """How much and how long a client may take; one whose body comes at a good pace may take longer than `body_s`."""

    body_bytes: int
    head_s: float
    body_s: float


class Limited(Protocol):
    """A client's connection."""

    def look(self, now: float) -> None:
        """Ends what takes longer than it may; `now` is the event loop's time."""


class Deadlines:
    """Looks at all connections, a few times within the shortest limit."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._loop = asyncio.get_running_loop()
        self._pause_s = min(limits.head_s, limits.body_s) / LOOKS
        self._watched: set[Limited] = set()
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, connection: Limited) -> None:
        """Watches a connection from now on."""
        self._watched.add(connection)
        if self._timer is None:
            self._timer = self._loop.call_later(self._pause_s, self._look)

    def forget(self, connection: Limited) -> None:
        """Watches a connection no longer."""
        self._watched.discard(connection)

    def _look(self) -> None:
        now = self._loop.time()
        for connection in list(self._watched):
            connection.look(now)
        self._timer = self._loop.call_later(self._pause_s, self._look) if self._watched else None
