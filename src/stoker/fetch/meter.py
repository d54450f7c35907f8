"""Counts the bytes of a fetch over all its workers, and tells rate and time left."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import NamedTuple

WINDOW_S = 10.0


class Progress(NamedTuple):
    """How far a fetch is; rate and time left are None while nothing can be said of them."""

    fetched_bytes: int
    need_bytes: int
    checked_bytes: int
    check_bytes: int
    rate_bytes_s: float | None
    left_s: float | None


class Meter:
    """What the workers count, each on its own thread. `fetched_bytes` includes what an earlier fetch left behind."""

    def __init__(self, need_bytes: int, check_bytes: int) -> None:
        self.need_bytes, self.check_bytes = need_bytes, check_bytes
        self.fetched_bytes = self.checked_bytes = self.received_bytes = 0
        self._lock = threading.Lock()
        self._seen: deque[tuple[float, int]] = deque()

    def fetched(self, count: int) -> None:
        """Counts bytes that came over the network."""
        with self._lock:
            self.fetched_bytes += count
            self.received_bytes += count

    def found(self, count: int) -> None:
        """Counts bytes that an earlier fetch left; less than none where they were of no use."""
        with self._lock:
            self.fetched_bytes += count

    def checked(self, count: int) -> None:
        """Counts bytes that were verified; less than none where they have to be verified again."""
        with self._lock:
            self.checked_bytes += count

    def read(self) -> Progress:
        """Returns how far the fetch is; the rate is that of the last seconds."""
        now = time.monotonic()
        with self._lock:
            fetched, checked, received = self.fetched_bytes, self.checked_bytes, self.received_bytes
            self._seen.append((now, received))
            while len(self._seen) > 2 and now - self._seen[1][0] > WINDOW_S:
                self._seen.popleft()
            rate = rate_of(self._seen[0], self._seen[-1])
        left = (self.need_bytes - fetched) / rate if rate else None
        return Progress(fetched, self.need_bytes, checked, self.check_bytes, rate, left)


def rate_of(first: tuple[float, int], last: tuple[float, int]) -> float | None:
    """Returns bytes a second between two readings; None where they are the same or no time lies between them. Pure."""
    seconds = last[0] - first[0]
    return (last[1] - first[1]) / seconds if seconds > 0 and last[1] > first[1] else None
