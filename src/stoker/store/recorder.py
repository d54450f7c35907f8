"""Writes usage in a thread of its own: no request waits for the disk, and no fault of the disk ends what runs."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable

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
        self._noted: deque[UsageRecord] = deque()
        self._waiting: list[UsageRecord] = []
        self._asks: deque[_Ask] = deque()
        self._is_due, self._is_urgent = threading.Event(), threading.Event()
        self._fault = ""
        self._thread = threading.Thread(target=self._run, name="usage", daemon=True)  # a stuck disk must not hold the end up
        self._thread.start()

    def note(self, record: UsageRecord) -> None:
        """Takes a record; never waits and never fails."""
        if len(self._noted) + len(self._waiting) >= MOST_WAITING:
            self.unwritten += 1
            return
        self._noted.append(record)
        # The thread wakes once a batch: when it woke for each record, both fought for the interpreter, which took 14 % of
        # the event loop's time and 5 ms at a time from the requests that were under way.
        if not self._is_due.is_set():
            self._is_due.set()

    def flush(self, limit_s: float = FLUSH_LIMIT_S) -> None:
        """Returns once what was noted so far is written or cannot be, or when the limit is over."""
        self._ask(is_last=False, limit_s=limit_s)

    def close(self) -> None:
        """Writes what is left, and ends the thread."""
        self._ask(is_last=True, limit_s=FLUSH_LIMIT_S)
        self._thread.join(FLUSH_LIMIT_S)

    def _ask(self, is_last: bool, limit_s: float) -> None:
        ask = _Ask(is_last)
        self._asks.append(ask)
        self._is_urgent.set()
        self._is_due.set()
        ask.wait(limit_s)

    # In the thread.

    def _run(self) -> None:
        is_last = False
        while not is_last:
            self._is_due.wait()
            self._is_urgent.wait(PAUSE_S)
            self._is_due.clear()  # before what it announces is taken, so that nothing is left lying
            self._is_urgent.clear()
            asks = [self._asks.popleft() for _ in range(len(self._asks))]
            self._waiting += [self._noted.popleft() for _ in range(len(self._noted))]
            self._write()
            for ask in asks:
                ask.set()
            is_last = any(ask.is_last for ask in asks)
            if self._waiting:  # the disk took none
                self._is_due.set()
        if self._store is not None:
            self._store.close()

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
