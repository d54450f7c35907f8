"""Writes usage in a thread of its own: no request waits for the disk, and no fault of the disk ends what runs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue

from stoker.box import clock_s
from stoker.errors import StokerError
from stoker.records import UsageRecord
from stoker.store.usage import UsageStore

PAUSE_S = 1.0  # what a killed daemon may lose
BATCH = 500
MOST_WAITING = 20_000  # records that wait for a disk that takes none: about 10 MB
FLUSH_LIMIT_S = 5.0
logger = logging.getLogger("stoker.usage")


class _Ask(threading.Event):
    """Asks for what was noted so far to be written; set when it is done."""

    def __init__(self, is_last: bool) -> None:
        super().__init__()
        self.is_last = is_last


class Recorder:
    """Takes records from the thread that answers requests; `unwritten` counts those that had to be dropped."""

    def __init__(self, open_store: Callable[[], UsageStore]) -> None:
        self.unwritten = 0
        self._open_store = open_store
        self._store: UsageStore | None = None
        self._queue: SimpleQueue[UsageRecord | _Ask] = SimpleQueue()
        self._waiting: list[UsageRecord] = []
        self._fault = ""
        self._thread = threading.Thread(target=self._run, name="usage", daemon=True)  # a stuck disk must not hold the end up
        self._thread.start()

    def note(self, record: UsageRecord) -> None:
        """Takes a record; never waits and never fails."""
        if self._queue.qsize() < MOST_WAITING:
            self._queue.put(record)
        else:
            self.unwritten += 1

    def flush(self, limit_s: float = FLUSH_LIMIT_S) -> None:
        """Returns once what was noted so far is written or cannot be, or when the limit is over."""
        self._ask(is_last=False, limit_s=limit_s)

    def close(self) -> None:
        """Writes what is left, and ends the thread."""
        self._ask(is_last=True, limit_s=FLUSH_LIMIT_S)
        self._thread.join(FLUSH_LIMIT_S)

    def _ask(self, is_last: bool, limit_s: float) -> None:
        ask = _Ask(is_last)
        self._queue.put(ask)
        ask.wait(limit_s)

    # In the thread.

    def _run(self) -> None:
        ask = None
        while ask is None or not ask.is_last:
            ask = self._gather()
            self._write()
            if ask is not None:
                ask.set()
        if self._store is not None:
            self._store.close()

    def _gather(self) -> _Ask | None:
        """Waits for records; returns when they make a batch, are old enough, or somebody asks for them."""
        end = time.monotonic() + PAUSE_S if self._waiting else None
        for _ in range(BATCH):
            try:
                item = self._queue.get(timeout=None if end is None else max(0.0, end - time.monotonic()))
            except Empty:
                return None
            if isinstance(item, _Ask):
                return item
            self._keep(item)
            end = end or time.monotonic() + PAUSE_S
        return None

    def _keep(self, record: UsageRecord) -> None:
        if len(self._waiting) < MOST_WAITING:
            self._waiting.append(record)
        else:
            self.unwritten += 1

    def _write(self) -> None:
        try:
            while self._waiting:
                self._store = self._store or self._open_store()
                self._store.write(self._waiting[:BATCH], clock_s())
                del self._waiting[:BATCH]
            self._fault = ""
        except StokerError as problem:
            self._tell(problem.why)
        except (ValueError, OverflowError) as problem:  # what SQLite cannot hold: it would fail again and hold others up
            self.unwritten += len(self._waiting)
            self._waiting.clear()
            self._tell(str(problem))

    def _tell(self, fault: str) -> None:
        if fault != self._fault:
            logger.warning("usage is not written: %s; it is kept in memory for now", fault)
        self._fault = fault
