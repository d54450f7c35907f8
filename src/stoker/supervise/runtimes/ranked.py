"""An engine of which other boxes run parts: they are started first, watched beside it, and ended with it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from stoker.errors import Refused, StokerError
from stoker.records import RESTING, Handle, State
from stoker.records.rank_views import RankView
from stoker.records.ranks import Part
from stoker.supervise.runtimes import Running, Runtime, Start, StoppedElsewhere
from stoker.supervise.runtimes.ray import RayHeadRuntime, until_first_ends

# A part whose head is not heard for so long ends by itself; the head gives a silent box up before that.
LEASE_S, SILENT_S = 30.0, 15.0
RENEW_S, RETRY_S = 5.0, 0.5
NOT_YET = frozenset({State.WAITING_FOR_MEMORY, State.STARTING})
ENDS = RESTING | {State.BACKOFF, State.DRAINING, State.STOPPING, State.SETTLING}
logger = logging.getLogger("stoker.supervise")


class Crew(Protocol):
    """Speaks to the boxes that run the other ranks; it lies in higher rooms. All raise StokerError."""

    async def start(self, part: Part, launch: str) -> RankView:
        """Asks for a rank to be started."""

    async def renew(self, part: Part, launch: str, seen: State | None, limit_s: float, is_whole: bool) -> RankView:
        """Says that a rank is still wanted; returns it once its state is not the one seen, or after the limit."""

    async def stop(self, part: Part) -> RankView:
        """Asks for whatever rank of the service the box runs for this one to end, and waits some seconds for it."""

    async def await_whole(self, service: str) -> None:
        """Returns once the head of a rank that runs here has had an answer of the whole."""


class RanksLost(StokerError):
    """A part of the engine is gone, and so the whole is."""


class RankedRunning:
    """The engine's own part here, and the others as they were last heard of."""

    def __init__(self, own: Running, parts: Sequence[Part], crew: Crew, launch: str) -> None:
        self.own = own
        self._is_whole = False
        self._parts, self._crew, self._launch = parts, crew, launch
        self._seen: dict[int, RankView] = {}
        self._waiting: asyncio.Task[str] | None = None

    @property
    def pid(self) -> int | None:
        """The first process of the part that runs here."""
        return self.own.pid

    @property
    def ranks(self) -> tuple[RankView, ...]:
        """The other ranks, as they were last heard of."""
        return tuple(view for _, view in sorted(self._seen.items()))

    async def tell_whole(self) -> None:
        """Says to the other boxes that the whole has answered, which proves their ranks; one that does not hear it will."""
        self._is_whole = True
        told = (self._crew.renew(part, self._launch, None, 0.0, is_whole=True) for part in self._parts)
        await asyncio.gather(*told, return_exceptions=True)

    async def wait(self) -> str:
        """Waits for the first rank that ends, here or elsewhere, and says how it did."""
        self._waiting = asyncio.ensure_future(self.own.wait())
        watchers = [asyncio.ensure_future(self._watch(part)) for part in self._parts]
        try:
            done, _ = await asyncio.wait([self._waiting, *watchers], return_when=asyncio.FIRST_COMPLETED)
            return (self._waiting if self._waiting in done else done.pop()).result()
        finally:
            for task in watchers:
                task.cancel()

    async def _watch(self, part: Part) -> str:
        heard_s, seen = time.monotonic(), None
        while True:
            try:
                view = await self._crew.renew(part, self._launch, seen, RENEW_S, self._is_whole)
            except StokerError as problem:
                if time.monotonic() - heard_s > SILENT_S:
                    return f"{_name(part)} was not heard of for {SILENT_S:g} s: {problem.what}: {problem.why}"
                await asyncio.sleep(RETRY_S)
                continue
            heard_s, seen, self._seen[part.ask.rank] = time.monotonic(), view.state, view
            if view.launch != self._launch:
                return f"{_name(part)} belongs to another start"
            if view.state in ENDS:
                return _say_end(part, view)

    def is_alive(self) -> bool:
        """Tells whether the part here still runs."""
        return self.own.is_alive()

    def pids(self) -> list[int]:
        """Returns the processes here."""
        return self.own.pids()

    def memory_bytes(self) -> int | None:
        """Returns the resident bytes here."""
        return self.own.memory_bytes()

    def close(self) -> None:
        """Lets go of the part here once it has ended, which it has yet to where another rank was the first to."""
        if self._waiting is None or self._waiting.done():
            self.own.close()
        else:
            self._waiting.add_done_callback(lambda _: self.own.close())


async def _wait_for_all(events: Sequence[asyncio.Event]) -> None:
    for event in events:
        await event.wait()


def _name(part: Part) -> str:
    return f"rank {part.ask.rank} on {part.box}"


def _say_end(part: Part, view: RankView) -> str:
    said = f"{_name(part)} is {view.state}: {view.why}"
    if view.is_unwanted:
        raise StoppedElsewhere(said)
    return said


class RankedRuntime:
    """The runtime of rank 0 with the other ranks before it and after it."""

    def __init__(self, own: Runtime, parts: Sequence[Part], crew: Crew) -> None:
        self._own, self._parts, self._crew = own, parts, crew

    async def start(self, start: Start, handle: Handle, save: Callable[[Handle], None]) -> Running:
        """Starts the workers, which wait for the head; and the head once each box had the memory for its part.

        Under Ray the other way round: Ray's head, then the workers, which join it, and the engine once all have.
        """
        if not isinstance(self._own, RayHeadRuntime):
            await self._start_parts(start, NOT_YET)
            return self._running(await self._own.start(start, handle, save), start.marker)
        head = await self._own.start_head(start, handle, save)
        await until_first_ends(head, self._start_parts(start, NOT_YET | {State.LOADING}))
        try:
            return self._running(await self._own.start_beside(head, start, save), start.marker)
        except BaseException:
            head.close()
            raise

    async def _start_parts(self, start: Start, not_yet: frozenset[State]) -> None:
        """Returns once all other ranks are past some states; raises RanksLost with what became of those that will not be."""
        theres = [asyncio.Event() for _ in self._parts]
        async with asyncio.TaskGroup() as tasks:
            jobs = [
                tasks.create_task(self._start_and_keep(part, start.marker, not_yet, there))
                for part, there in zip(self._parts, theres, strict=True)
            ]
            all_there = tasks.create_task(_wait_for_all(theres))
            await asyncio.wait([all_there, *jobs], return_when=asyncio.FIRST_COMPLETED)
            for task in (all_there, *jobs):
                task.cancel()
        lost = [job.result() for job in jobs if not job.cancelled()]
        if lost:
            raise RanksLost("; ".join(lost), next_step=f"`stoker logs {start.plan.service} --on BOX` shows what it said")

    async def _start_and_keep(self, part: Part, launch: str, not_yet: frozenset[State], there: asyncio.Event) -> str:
        """Brings a rank past some states, and says that it is still wanted while others come; returns what became of it."""
        if said := await self._start(part, launch, not_yet):
            return said
        there.set()
        while True:
            await asyncio.sleep(RENEW_S)
            with contextlib.suppress(StokerError):  # not heard for a moment: once all are there, each is watched
                view = await self._crew.renew(part, launch, None, 0.0, is_whole=False)
                if view.state in ENDS or view.launch != launch:
                    return f"{_name(part)} is {view.state}: {view.why}"

    async def _start(self, part: Part, launch: str, not_yet: frozenset[State]) -> str:
        """Returns nothing once a rank is past some states, or what became of it instead."""
        try:
            view = await self._crew.start(part, launch)
            while view.state in not_yet:
                view = await self._crew.renew(part, launch, view.state, RENEW_S, is_whole=False)
        except StokerError as problem:
            return f"{_name(part)} was not started: {problem.what}" + (f": {problem.why}" if problem.why else "")
        return f"{_name(part)} is {view.state}: {view.why}" if view.state in ENDS else ""

    async def find(self, handle: Handle) -> Running | None:
        """Returns the part here if it lives; whether the others do, its wait tells at once."""
        own = await self._own.find(handle)
        return self._running(own, handle.marker) if own else None

    def _running(self, own: Running, launch: str) -> RankedRunning:
        return RankedRunning(own, self._parts, self._crew, launch)

    async def keep_good(self, running: Running, image: str) -> object:
        """Keeps what the part here was READY in."""
        return await self._own.keep_good(running.own if isinstance(running, RankedRunning) else running, image)

    async def stop(self, running: Running | None, grace_s: float, kill_limit_s: float) -> str:
        """Ends all ranks, here and elsewhere, at once; returns what outlived that."""
        own = running.own if isinstance(running, RankedRunning) else running
        async with asyncio.TaskGroup() as tasks:
            here = tasks.create_task(self._own.stop(own, grace_s, kill_limit_s))
            there = [tasks.create_task(self._stop(part)) for part in self._parts]
        return "; ".join(left for left in (here.result(), *(job.result() for job in there)) if left)

    async def _stop(self, part: Part) -> str:
        """Ends a rank elsewhere, with its memory back; one that cannot be told ends by itself, and is waited for so long."""
        end = time.monotonic() + LEASE_S
        while True:
            try:
                view = await self._crew.stop(part)
            except Refused as problem:  # it knows no such rank
                logger.info("%s: %s", _name(part), problem.what)
                return ""
            except StokerError as problem:
                if time.monotonic() > end:
                    logger.warning("%s was not told to end, and ends by itself: %s", _name(part), problem.why)
                    return ""
                await asyncio.sleep(RETRY_S)
                continue
            if view.state in RESTING:
                return f"{_name(part)} is WEDGED: {view.why}" if view.state is State.WEDGED else ""
