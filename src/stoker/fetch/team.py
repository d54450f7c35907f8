"""Fetches many files at once, and stops all of it at the first error or when the user says so."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from queue import Empty, SimpleQueue

from stoker.fetch.listing import HubFile
from stoker.fetch.patience import Patience, Stopped
from stoker.fetch.transfer import Job, fetch_file

END_LIMIT_S = 2.0

Task = tuple[Job, HubFile]


class Team:
    """The workers of one fetch. They are daemon threads: one that hangs in a read does not keep the program from ending."""

    def __init__(self, tasks: Iterable[Task], workers: int, patience: Patience) -> None:
        self.patience = patience
        self.tasks: SimpleQueue[Task] = SimpleQueue()
        for task in tasks:
            self.tasks.put(task)
        self.problems: SimpleQueue[BaseException] = SimpleQueue()
        self.at_work = min(workers, max(1, self.tasks.qsize()))
        self.changed = threading.Condition()
        self.threads = [threading.Thread(target=self._work, daemon=True) for _ in range(self.at_work)]

    def run(self, tick: Callable[[], None], tick_s: float) -> None:
        """Works to the end, calling `tick` again and again; raises the first error. What is on disk stays."""
        for thread in self.threads:
            thread.start()
        try:
            self._await(tick, tick_s)
        finally:
            self.patience.stop.set()
            end = time.monotonic() + END_LIMIT_S
            for thread in self.threads:
                thread.join(max(0.0, end - time.monotonic()))
        if not self.problems.empty():
            raise self.problems.get()

    def _await(self, tick: Callable[[], None], tick_s: float) -> None:
        while True:
            with self.changed:
                is_over = self.changed.wait_for(lambda: self.at_work == 0 or not self.problems.empty(), tick_s)
            if is_over:
                return
            tick()

    def _work(self) -> None:
        try:
            while True:
                self.patience.check()
                fetch_file(*self.tasks.get_nowait())
        except (Empty, Stopped):
            pass
        except BaseException as problem:  # noqa: BLE001 - it is raised where the team is awaited
            self.problems.put(problem)
        with self.changed:
            self.at_work -= 1
            self.changed.notify_all()
