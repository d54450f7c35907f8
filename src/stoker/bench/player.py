"""Plays jobs: sends each when its turn comes, and hears all replies, in one thread that does nothing else.

A load is closed where `most` requests are kept under way, and open where each has its time. Connections are opened before
the clock starts, as a client that keeps its connections has them; a request's time begins with the write of its first byte.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from stoker.bench.exchange import Exchange, Job
from stoker.bench.line import Line
from stoker.bench.lines import Lines

LOOK_S = 0.25  # how often silence is looked for
NEAR_S = 0.002  # epoll waits for whole milliseconds: what is due sooner is waited for awake
PAUSE_S = 1.0  # after a failure, where jobs end by the clock: a server that refuses is not to be hammered
SPARE = 2  # connections kept ready where requests come by the clock
MOST_REFUSED = 100  # connections refused in a row: nobody is there any more

Follow = Callable[[Exchange], Job | None]
Tell = Callable[[Exchange], None]


class Played(NamedTuple):
    """What was sent and came, in the order of sending, and how it went for us.

    `began_s` is on the clock of `time.perf_counter`, `began_at` since the epoch; `busy_s` of `took_s` we were not waiting.
    `is_whole` is False where somebody interrupted it.
    """

    exchanges: list[Exchange]
    began_s: float
    began_at: float
    took_s: float
    busy_s: float
    cpu_s: float
    has_stamps: bool
    reconnected: int
    is_whole: bool


class Rules(NamedTuple):
    """How to play: `most` at once (None: no bound), nothing begun after `for_s`, given up after `silence_s` of silence.

    `is_stopped` tells that somebody wants it to end now.
    """

    silence_s: float
    most: int | None = None
    for_s: float | None = None
    is_stopped: Callable[[], bool] = lambda: False


def play(lines: Lines, jobs: Iterable[Job], rules: Rules, follow: Follow | None = None, tell: Tell | None = None) -> Played:
    """Plays all jobs, in their order; `follow` may give an exchange's next turn, `tell` hears of each end."""
    return _Playing(lines, jobs, rules, follow, tell).run()


class _Playing:
    def __init__(self, lines: Lines, jobs: Iterable[Job], rules: Rules, follow: Follow | None, tell: Tell | None) -> None:
        self._lines, self._rules, self._follow, self._tell = lines, rules, follow, tell
        self._jobs = iter(jobs)
        self._first: deque[Job] = deque()  # next turns, and a job that waits for its time
        self._under_way: dict[int, tuple[Line, Exchange]] = {}
        self._all: list[Exchange] = []
        self._is_ended = False
        self._busy_s = self._hold_until_s = self._looked_s = 0.0
        self._reconnected = 0

    def run(self) -> Played:
        began_at, cpu_s = time.time(), time.process_time()
        self._began_s = time.perf_counter()
        is_whole = True
        while is_whole and not self._is_over():
            self._turn()
            is_whole = not self._rules.is_stopped()
        for line, _ in self._under_way.values():
            self._lines.drop(line)
        took_s = time.perf_counter() - self._began_s
        return Played(
            self._all, self._began_s, began_at, took_s, self._busy_s, time.process_time() - cpu_s, self._lines.has_stamps,
            self._reconnected, is_whole,
        )  # fmt: skip

    def _is_over(self) -> bool:
        return not self._under_way and self._next() is None

    def _turn(self) -> None:
        woken_s = time.perf_counter()
        wait_s = self._send_due()
        self._look_for_silence()
        self._busy_s += time.perf_counter() - woken_s
        told = self._lines.poll(wait_s)
        woken_s = time.perf_counter()
        for line in told:
            self._hear(line)
        self._busy_s += time.perf_counter() - woken_s

    # Sending.

    def _next(self) -> Job | None:
        """Returns the next job without taking it; None where there is no more, or the time is over."""
        if self._rules.for_s is not None and time.perf_counter() - self._began_s >= self._rules.for_s:
            self._is_ended = True
        if not self._first and not self._is_ended:
            self._first.extend(job for job in (next(self._jobs, None),) if job is not None)
            self._is_ended = not self._first
        if self._is_ended and self._rules.for_s is not None:
            return None
        return self._first[0] if self._first else None

    def _send_due(self) -> float:
        """Sends what is due; returns for how long nothing will be."""
        while (job := self._next()) is not None:
            now_s = time.perf_counter()
            due_s = max(self._hold_until_s, now_s if job.due_s is None else self._began_s + job.due_s)
            if self._rules.most is not None and len(self._under_way) >= self._rules.most:
                return LOOK_S
            if due_s > now_s:
                return 0.0 if due_s - now_s < NEAR_S else min(LOOK_S, due_s - now_s - NEAR_S / 2)
            if not self._send(job):
                return LOOK_S
        return LOOK_S

    def _send(self, job: Job) -> bool:
        """Sends a job over a free connection; False where one has to be opened first."""
        while (line := self._lines.take()) is not None:
            if self._write(line, job):
                self._first.popleft()
                if job.due_s is not None and self._lines.reuses:
                    self._lines.open_more(SPARE - self._lines.free - self._lines.opening)
                return True
            self._lines.drop(line)
        if self._lines.refused and not self._lines.opening:
            self._first.popleft()
            self._fail_unsent(job)
            return True
        if not self._lines.opening:
            self._lines.open_more(1)
        return False

    def _write(self, line: Line, job: Job) -> bool:
        exchange = Exchange(job, time.perf_counter())
        try:
            line.send(job.request)
        except OSError:  # it was closed while it was free
            return False
        exchange.due_s = None if job.due_s is None else self._began_s + job.due_s
        self._under_way[line.number] = line, exchange
        self._all.append(exchange)
        line.is_busy = True
        if line.has_unsent:
            self._lines.watch(line)
        return True

    def _fail_unsent(self, job: Job) -> None:
        exchange = Exchange(job, time.perf_counter())
        exchange.problem = f"nobody answers there: {self._lines.refusal}"
        self._all.append(exchange)
        self._end(exchange)
        if self._lines.refused < MOST_REFUSED:
            self._lines.open_more(1)

    # Hearing.

    def _hear(self, line: Line) -> None:
        exchange = self._under_way[line.number][1]
        try:
            if line.has_unsent:
                line.flush()
                self._lines.watch(line)
            read = line.receive(exchange.heard_s)
        except OSError as problem:
            exchange.problem = f"it broke the connection off: {problem}"
            read = None
        if read is not None:
            exchange.take(read)
        if exchange.is_over:
            self._finish(line, exchange)

    def _finish(self, line: Line, exchange: Exchange) -> None:
        del self._under_way[line.number]
        was_used, line.is_used = line.is_used, True
        if exchange.problem and was_used and exchange.status is None and not exchange.is_silent:
            # It closed an idle connection just when we wrote to it: what clients that keep connections try again.
            self._all.remove(exchange)
            self._first.appendleft(exchange.job)
            self._reconnected += 1
            self._lines.drop(line)
            return
        self._lines.give_back(line, keeps_alive=exchange.keeps_alive and not exchange.problem)
        if not self._lines.reuses and exchange.job.due_s is None:
            self._lines.open_more(1)
        self._end(exchange)

    def _end(self, exchange: Exchange) -> None:
        if self._rules.for_s is not None and (exchange.problem or exchange.status != 200):
            self._hold_until_s = time.perf_counter() + PAUSE_S
        following = self._follow(exchange) if self._follow else None
        if following is not None:
            self._first.appendleft(following)
        if self._tell is not None:
            self._tell(exchange)

    def _look_for_silence(self) -> None:
        now_s = time.perf_counter()
        if now_s - self._looked_s < LOOK_S:
            return
        self._looked_s = now_s
        for line, exchange in list(self._under_way.values()):
            if now_s - exchange.heard_s > self._rules.silence_s:
                exchange.fall_silent(self._rules.silence_s)
                self._finish(line, exchange)
