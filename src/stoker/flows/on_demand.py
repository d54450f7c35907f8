"""Brings services up because requests name them: one start for all who wait for it, and its outcome told to all."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from stoker.errors import BY_EXIT_CODE, Refused, StokerError
from stoker.flows.menu import Menu
from stoker.records import Wish

REFUSED_PAUSE_S, FIRST_PAUSE_S, LONGEST_PAUSE_S = 2.0, 10.0, 600.0
logger = logging.getLogger("stoker.daemon")


class Way(Protocol):
    """How a service comes up."""

    def is_up(self, service: str) -> bool:
        """Tells whether a service answers."""

    def check(self, service: str) -> object:
        """Raises Refused for a service that a request may not start now."""

    async def bring(self, service: str, say: Callable[[str], None]) -> None:
        """Returns once a service is READY; raises Refused where nothing was begun, else another StokerError."""


@dataclass
class _Start:
    """One start under way, for all who wait for it; its outcome is None, or the error that it ended with."""

    outcome: asyncio.Future[StokerError | None]
    waits_for: str = ""

    def say(self, what: str) -> None:
        self.waits_for = what


@dataclass(frozen=True)
class _Failure:
    """Why the last start failed; as long as the pause lasts and the wish is the same, no request tries it again."""

    problem: StokerError
    wish: Wish | None
    count: int
    until: float


def _fail(problem: StokerError, wish: Wish | None, before: _Failure | None) -> _Failure:
    """Returns a failure with its pause: short where nothing was begun, longer with each start that failed in a row."""
    count = before.count if before is not None and before.wish == wish else 0
    if isinstance(problem, Refused):
        return _Failure(problem, wish, count, time.time() + REFUSED_PAUSE_S)
    return _Failure(problem, wish, count + 1, time.time() + min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(count, 10)))


class OnDemand:
    """Starts services for requests, each once; `open` gives it the TaskGroup in which the starts live."""

    def __init__(self, menu: Menu, way: Way) -> None:
        self._menu = menu
        self._way = way
        self._starts: dict[str, _Start] = {}
        self._failures: dict[str, _Failure] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._tasks: asyncio.TaskGroup | None = None

    def open(self, tasks: asyncio.TaskGroup) -> None:
        """Begins to take requests."""
        self._tasks = tasks

    def close(self) -> None:
        """Gives all starts up, since the daemon ends; whoever waits is told."""
        self._tasks = None
        for start in self._starts.values():  # not from within its task, which may not have begun yet
            if not start.outcome.done():
                start.outcome.set_result(_ending())
        for task in self._running:
            task.cancel()

    def ask(self, service: str) -> None:
        """Sees to it that a service comes up, without waiting for it; raises StokerError where it is not to, for now.

        One that failed is not tried again before a pause is over or its table changed: 10 s, then twice as long each time.
        """
        if service in self._starts or self._way.is_up(service):
            return
        if self.pause_left_s(service):
            raise _again(self._failures[service].problem)
        self._way.check(service)
        if self._tasks is None:
            raise _ending()
        start = self._starts[service] = _Start(asyncio.get_running_loop().create_future())
        task = self._tasks.create_task(self._run(service, start))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def bring(self, service: str) -> None:
        """Returns once a service is READY; raises StokerError where it did not come up.

        A caller that is cancelled leaves the start to the others, and to who asks next.
        """
        self.ask(service)
        start = self._starts.get(service)
        problem = await asyncio.shield(start.outcome) if start else None
        if problem is not None:
            raise _again(problem)

    def waits_for(self, service: str) -> str:
        """Returns what a start that is under way waits for; empty where none is."""
        start = self._starts.get(service)
        return start.waits_for if start else ""

    def pause_left_s(self, service: str) -> float:
        """Returns for how long no request starts a service that failed to; 0 where one may."""
        failure = self._failures.get(service)
        if failure is None or failure.wish != self._menu.wish(service):
            return 0.0
        return max(0.0, min(LONGEST_PAUSE_S, failure.until - time.time()))

    async def _run(self, service: str, start: _Start) -> None:
        problem: StokerError | None = _ending()
        wish = self._menu.wish(service)
        try:
            problem = await self._try(service, start)
            self._note(service, wish, problem)
        finally:
            del self._starts[service]
            if not start.outcome.done():
                start.outcome.set_result(problem)

    async def _try(self, service: str, start: _Start) -> StokerError | None:
        logger.info("service=%s is asked for by a request", service)
        try:
            await self._way.bring(service, start.say)
        except StokerError as problem:
            logger.warning("service=%s did not come up for a request: %s", service, problem.what)
            return problem
        except Exception as problem:  # a fault here must not end the daemon, and with it all services
            logger.exception("service=%s did not come up for a request", service)
            return StokerError(f"Stoker itself failed ({type(problem).__name__}: {problem})", next_step="see daemon.log")
        return None

    def _note(self, service: str, wish: Wish | None, problem: StokerError | None) -> None:
        before = self._failures.pop(service, None)
        if problem is not None:
            self._failures[service] = _fail(problem, wish, before)


def _again(problem: StokerError) -> StokerError:
    """Returns the error once more: each who waits raises one of their own."""
    kind = BY_EXIT_CODE.get(problem.exit_code, StokerError)
    return kind(problem.what, why=problem.why, next_step=problem.next_step, rule=problem.rule)


def _ending() -> StokerError:
    return StokerError("the daemon is ending", next_step="ask again once the next one runs")
