"""Looks at the engine's counters beside a long load, in a thread and over connections of its own."""

from __future__ import annotations

import threading
import time
from typing import NamedTuple

from stoker.bench.asking import Asker
from stoker.counters import Counters, read_counters


class Counted(NamedTuple):
    """The counters at a moment, on the clock of `time.perf_counter`."""

    at_s: float
    counters: Counters


class CounterWatch:
    """Collects counters each `every_s` until it is closed; nothing where the engine does not tell."""

    def __init__(self, asker: Asker, every_s: float) -> None:
        self._asker, self._every_s = asker, every_s
        self._looks: list[Counted] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="counters", daemon=True)
        self._thread.start()

    def close(self) -> list[Counted]:
        """Looks once more, ends, and returns all that was seen."""
        self._is_over.set()
        self._thread.join()
        self._look()
        self._asker.close()
        return self._looks

    def _run(self) -> None:
        next_s = time.perf_counter()
        while not self._is_over.is_set():
            self._look()
            next_s += self._every_s
            self._is_over.wait(max(0.0, next_s - time.perf_counter()))

    def _look(self) -> None:
        counters = read_counters(self._asker.read("/metrics"))
        if counters is not None:
            self._looks.append(Counted(time.perf_counter(), counters))
