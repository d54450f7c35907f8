"""The connections to one origin: opened before they are needed, and told of when something came."""

from __future__ import annotations

import select
import time

from stoker.bench.line import Line
from stoker.bench.origin import Origin
from stoker.bench.stamps import wall_offset_ns

OPEN_LIMIT_S = 10.0
LOOK_S = 0.25


class Lines:
    """Keeps connections; `reuses` False closes each after its reply, for servers that hold a thread for an idle one.

    `refused` counts connections that failed in a row, `refusal` says how; `opening` are on their way.
    """

    def __init__(self, origin: Origin, *, reuses: bool = True) -> None:
        self.origin = origin
        self.reuses = reuses
        self.has_stamps = True
        self.opening = self.refused = 0
        self.refusal = ""
        self._epoll = select.epoll()
        self._all: dict[int, Line] = {}
        self._free: list[Line] = []
        self._offset_ns = wall_offset_ns()

    @property
    def free(self) -> int:
        """How many are open and carry nothing."""
        return len(self._free)

    def open(self, count: int) -> None:
        """Opens connections until so many are free, or until OPEN_LIMIT_S; a refusal is told when a request is sent."""
        self._offset_ns = wall_offset_ns()
        self.poll(0.0)
        end_s = time.perf_counter() + OPEN_LIMIT_S
        self.open_more(count - self.free)
        while self.opening and time.perf_counter() < end_s:
            self.poll(LOOK_S)

    def open_more(self, count: int) -> None:
        """Begins to open more."""
        for _ in range(count):
            try:
                line = Line(self.origin, self._offset_ns)
            except OSError as problem:
                self._refuse(problem)
                return
            self.has_stamps = line.has_stamps
            self._all[line.number] = line
            self._epoll.register(line.number, line.wants)
            self.opening += 1

    def _refuse(self, problem: OSError) -> None:
        self.refusal, self.refused = str(problem), self.refused + 1

    def take(self) -> Line | None:
        """Returns a connection that is free; None where there is none."""
        return self._free.pop() if self._free else None

    def give_back(self, line: Line, *, keeps_alive: bool) -> None:
        """Takes a connection whose reply is over."""
        if keeps_alive and self.reuses:
            line.is_busy = False
            self._free.append(line)
        else:
            self.drop(line)

    def drop(self, line: Line) -> None:
        """Closes a connection."""
        self.opening -= not line.is_open
        self._all.pop(line.number, None)
        if line in self._free:
            self._free.remove(line)
        line.close()  # which takes it out of epoll as well

    def watch(self, line: Line) -> None:
        """Looks anew what is wanted of a connection."""
        self._epoll.modify(line.number, line.wants)

    def poll(self, limit_s: float) -> list[Line]:
        """Waits until something happens, and returns the busy connections on which it did."""
        told = []
        for number, _ in self._epoll.poll(limit_s):
            line = self._all[number]
            if line.is_busy:
                told.append(line)
            elif line.is_open:
                self.drop(line)  # a server says nothing unasked but that it closes
            else:
                self._go_on(line)
        return told

    def _go_on(self, line: Line) -> None:
        try:
            line.go_on_opening()
        except OSError as problem:
            self._refuse(problem)
            self.drop(line)
            return
        if line.is_open:
            self.opening -= 1
            self.refused = 0
            self._free.append(line)
        self.watch(line)

    def close(self) -> None:
        """Closes them all; what they carry is left."""
        for line in list(self._all.values()):
            line.close()
        self._all.clear()
        self._free.clear()
        self.opening = 0
        self._epoll.close()
