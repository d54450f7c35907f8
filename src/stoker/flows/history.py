"""How long the starts of each service took, to tell whoever waits for the next one."""

from __future__ import annotations

import logging
import statistics
from collections import defaultdict, deque

from stoker.errors import StokerError
from stoker.records import Start
from stoker.store.last_rows import KEPT
from stoker.store.timelines import TimelineStore, read_recent

LAST_STARTS = 5
logger = logging.getLogger("stoker.daemon")


class History:
    """The store of starts, with the last that led to an answer in memory: whoever asks does not wait for a disk."""

    def __init__(self, store: TimelineStore) -> None:
        self._store = store
        self._took_s: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=LAST_STARTS))
        self._load()

    def _load(self) -> None:
        try:
            for start in read_recent(self._store.file, KEPT):
                self._take(start)
        except StokerError as problem:  # then nothing is expected of them
            logger.warning("former starts cannot be read: %s", problem.why)

    def _take(self, start: Start) -> None:
        line = start.timeline
        if line.is_ready and line.total_s is not None:
            self._took_s[start.service].append(line.total_s)

    def write(self, start: Start) -> None:
        """Keeps a start that is over; raises StokerError where the disk is full."""
        self._take(start)
        self._store.write(start)

    def forget(self, service: str) -> None:
        """Forgets all starts of a service."""
        self._took_s.pop(service, None)
        self._store.forget(service)

    def expected_s(self, service: str) -> float | None:
        """Returns the median of the last starts; None where none is known."""
        took_s = self._took_s.get(service)
        return statistics.median(took_s) if took_s else None
