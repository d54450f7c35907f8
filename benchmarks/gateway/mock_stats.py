"""What the mock engine counts and remembers."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable
from typing import Any

PER_US = 1000


class Event:
    """The life of one tagged request; `unsent_bytes` tells what its connection holds and the socket has not taken."""

    def __init__(self, engine: str, received_ns: int, body_bytes: int, unsent_bytes: Callable[[], int]) -> None:
        self.engine = engine
        self.received_ns = received_ns
        self.body_bytes = body_bytes
        self.chunks = self.written_bytes = 0
        self.end: str | None = None
        self.ended_ns: int | None = None
        self._unsent_bytes = unsent_bytes

    def close(self, how: str) -> None:
        """Notes how and when it ended."""
        self.end, self.ended_ns = how, time.monotonic_ns()

    def report(self) -> dict[str, Any]:
        """Returns all that is known of it; `taken_bytes` is what the socket has taken."""
        known = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        return {**known, "taken_bytes": self.written_bytes - (0 if self.end else self._unsent_bytes())}


class Stats:
    """Counters since the start or the last reset."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forgets everything."""
        self.requests = self.active = self.peak = self.aborted = self.chunks = 0
        self.late_ns = array("q")  # by how much each paced chunk missed its time
        self.events: dict[str, list[Event]] = {}

    def begin(self) -> None:
        """Counts a reply that begins."""
        self.active += 1
        self.peak = max(self.peak, self.active)

    def end(self, is_aborted: bool) -> None:
        """Counts a reply that ends."""
        self.active -= 1
        self.aborted += is_aborted

    def report_events(self, tag: str) -> list[dict[str, Any]]:
        """Returns the lives of the requests of one tag."""
        return [event.report() for event in self.events.get(tag, [])]

    def report(self) -> dict[str, Any]:
        """Returns the counters."""
        late = sorted(self.late_ns)
        late_us = {name: late[min(len(late) - 1, int(share * len(late)))] / PER_US for name, share in SHARES} if late else {}
        return {
            "requests": self.requests, "active": self.active, "peak": self.peak, "aborted": self.aborted,
            "chunks": self.chunks, "late_us": late_us, "cpu_s": time.process_time(),
        }  # fmt: skip


SHARES = (("p50", 0.5), ("p99", 0.99), ("max", 1.0))
