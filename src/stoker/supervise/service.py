"""The owner of one service: the only code that changes its state. Everybody else sends it an event."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Protocol

from stoker.records import BEING_STARTED, CardMemory, Endpoint, Plan, SavedService, Service, ServiceView, State
from stoker.supervise.ending import await_exit
from stoker.supervise.hands import Hands, Holding, Tools
from stoker.supervise.jobs import do
from stoker.supervise.machine import (
    Adopted,
    Event,
    GroupGone,
    Job,
    PauseAsked,
    Policy,
    Spawned,
    StartAsked,
    StopAsked,
    recent_restarts,
    step,
)
from stoker.supervise.runtimes import Running
from stoker.supervise.runtimes.adopted import RunningAdopted
from stoker.supervise.runtimes.choose import holds_already
from stoker.supervise.view import view_of
from stoker.supervise.watching import watch_for_a_freeze, watch_memory

GOOD_PLANS = 3
NOTHING_TO_STOP = frozenset({State.STOPPED, State.FAILED, State.BACKOFF})
LEAVING = frozenset({State.DRAINING, State.STOPPING, State.SETTLING})
TAKEN_BACK = frozenset({State.STARTING, State.LOADING, State.PROVING, State.READY})
logger = logging.getLogger("stoker.supervise")


class Neighbours(Protocol):
    """What a service asks about the others."""

    def may_go(self, owner: ServiceOwner) -> bool:
        """Tells whether a service is the one to stop where the memory is short."""

    def in_the_way(self, owner: ServiceOwner) -> tuple[str, ...]:
        """Returns the services that a switch would stop for one that waits for memory."""


class ServiceOwner:
    """One service, its state and its engine; `run` is its only task."""

    def __init__(
        self,
        saved: SavedService,
        tools: Tools,
        save: Callable[[SavedService], str | None],
        neighbours: Neighbours,
    ) -> None:
        self.service = saved.service
        self._looked_at: Service | None = None
        self._neighbours = neighbours
        self._starts_asked = 0
        self.good = saved.good
        self._trials: set[str] = set()
        self._next_plan = saved.plan
        self._hands = Hands(saved.plan, tools, self._save, saved.handle)
        self._hands.measured = saved.measured
        self._hands.on_gate_step = self._tell_change
        self._write = save
        self._store_problem: str | None = None
        self._inbox: asyncio.Queue[tuple[Event, asyncio.Task[None] | None]] = (
            asyncio.Queue()
        )  # an event, and the job it ends
        self._changed = asyncio.Event()
        self._job: asyncio.Task[None] | None = None

    @property
    def plan(self) -> Plan:
        """How the service runs, or will run next."""
        return self._hands.plan

    @property
    def plans(self) -> tuple[Plan, Plan]:
        """How the service runs, and how it will run next."""
        return self._hands.plan, self._next_plan

    @property
    def kept_plan(self) -> Plan:
        """The plan of its engine while one runs, so that it can be taken back; else the one that comes next."""
        return self._hands.plan if self.service.state in TAKEN_BACK else self._next_plan

    @property
    def is_busy(self) -> bool:
        """Tells whether it has an engine, waits for one, or was asked to start."""
        if self._starts_asked:
            return True
        state = self.service.state  # one that was paused is STOPPED, and the next daemon has yet to start it
        return state not in (State.STOPPED, State.FAILED) or (state is State.STOPPED and self.service.wanted)

    @property
    def is_leaving(self) -> bool:
        """Tells whether it is about to give its memory back, and to stay stopped."""
        service = self.service
        return service.state in LEAVING and service.then in (State.STOPPED, State.FAILED) and not self._starts_asked

    def is_ready_by(self, plan: Plan) -> bool:
        """Tells whether it is READY by a plan, and nothing else was asked for."""
        is_this = {one.plan_id for one in self.plans} == {plan.plan_id}
        return self.service.state is State.READY and is_this and self._inbox.empty()

    def holding(self, *, by_last_look: bool) -> Holding:
        """Returns what it holds and has yet to take; by the last look, or by one that is made now."""
        return self._hands.holding(self.service, self.is_busy, by_last_look=by_last_look)

    def holding_on_card(self, free_bytes: int) -> Holding:
        """Returns what it holds and has yet to take of the card's memory, of which so much is free now."""
        return self._hands.holding_on_card(self.service, self.is_busy, free_bytes)

    def note_card(self, card: CardMemory | None) -> None:
        """Takes note of the card's memory while its engine runs."""
        self._hands.note_card_beside(card, self.service)

    @property
    def memory_before_bytes(self) -> int | None:
        """What was available before the present launch; None where there is none."""
        return None if self._hands.handle is None else self._hands.handle.memory_before_bytes

    @property
    def seen_bytes(self) -> int | None:
        """What its engine held when it was last looked at; None where there is none."""
        return self._hands.seen_bytes

    def need_for(self, plan: Plan) -> int:
        """Returns what a start by a plan has to find free."""
        return self._hands.need_for(plan)

    @property
    def is_foreign(self) -> bool:
        """Tells whether its engine was started by somebody else, who may want it to outlive the daemon."""
        return self.plan.adopted is not None and holds_already(self.plan)

    def holds(self, pid: int) -> bool:
        """Tells whether a process belongs to its engine."""
        running, adopted = self._hands.running, self._next_plan.adopted
        if adopted is not None and adopted.pid == pid and self.service.state not in (State.STOPPED, State.FAILED):
            return True
        return running is not None and (
            pid == running.pid or (isinstance(running, RunningAdopted) and running.tree.holds(pid))
        )

    @property
    def endpoint(self) -> Endpoint | None:
        """Where clients are answered; None unless READY (taken back, after a former daemon), and for another box's rank."""
        is_ready = self.service.state is State.READY and self._hands.running is not None and self.plan.seat is None
        return self._hands.endpoint if is_ready else None

    @property
    def is_tried_out(self) -> bool:
        """Tells whether it is up to be tried out alone, and never was up for anybody's use."""
        return self.plan.plan_id in self._trials and not self.good

    def ask_start(self, plan: Plan, why: str, *, is_trial: bool = False) -> None:
        """Asks for the service to run by this plan; one that runs by another plan is stopped first.

        A trial that is READY is no plan to go back to, until the same is asked for in earnest.
        """
        if is_trial:
            self._trials.add(plan.plan_id)
        elif plan.plan_id in self._trials:
            self._trials.discard(plan.plan_id)
            self._note_good()
            self._save()
        plans = {self._next_plan.plan_id, self._hands.plan.plan_id}
        other = plans != {plan.plan_id} and self.service.state not in NOTHING_TO_STOP
        self._next_plan = plan
        if other:
            self.post(StopAsked(time.time(), "its plan changed"))
        self.post(StartAsked(time.time(), why))

    def ask_stop(self, why: str) -> None:
        """Asks for the service to stop and stay stopped."""
        self.post(StopAsked(time.time(), why))

    def ask_pause(self, why: str) -> None:
        """Asks for the engine to end until the next daemon starts it again."""
        self.post(PauseAsked(time.time(), why))

    def post(self, event: Event) -> None:
        """Takes an event; its effect comes with its turn."""
        self._starts_asked += isinstance(event, StartAsked)
        self._inbox.put_nowait((event, None))

    async def await_handled(self) -> None:
        """Returns once everything that was asked for until now has had its effect on the state."""
        await self._inbox.join()

    async def await_change(self, limit_s: float | None) -> None:
        """Returns at the next change of state or step of its gate, or when the limit is over, if there is one."""
        changed = self._changed
        try:
            async with asyncio.timeout(limit_s):
                await changed.wait()
        except TimeoutError:
            return

    async def run(self) -> None:
        """Takes a former daemon's engine over or cleans up after it, then handles one event after the other."""
        async with asyncio.TaskGroup() as tasks:
            await self._resume(tasks)
            tasks.create_task(watch_memory(self, self._hands, self._neighbours.may_go))
            tasks.create_task(watch_for_a_freeze(self, self._hands))
            while True:
                event, job = await self._inbox.get()
                if (
                    isinstance(event, Spawned) and self._hands.running is not None
                ):  # even if a stop came first: it must be reaped
                    tasks.create_task(self._watch(self._hands.running, self.service.launch))
                if job in (None, self._job):  # what a job says that is not wanted any more means nothing
                    self._apply(event, tasks)
                self._starts_asked -= isinstance(event, StartAsked)
                self._inbox.task_done()

    async def _resume(self, tasks: asyncio.TaskGroup) -> None:
        before, handle = self.service, self._hands.handle
        living = await self._hands.runtime.find(handle) if handle else None
        wanted = before.wanted and before.state is not State.FAILED and (living is not None or self.plan.seat is None)
        if living and wanted and before.state in TAKEN_BACK:
            self._hands.running = living
            self._hands.log.begin()
            self._reset(State.STOPPED, before.why)
            self._apply(Adopted(time.time(), "its engine was found alive; it has to prove itself again"), tasks)
            tasks.create_task(self._watch(living, before.launch))
            return
        self._hands.running = living
        await self._clean_up(before)
        if living:
            living.close()  # nobody watches it, who would do so at its end
        asked_meanwhile = not self._inbox.empty()  # a stop that came first must not be undone
        if wanted and self.service.state is not State.WEDGED and not asked_meanwhile:
            self.post(StartAsked(time.time(), "it was up when the daemon ended"))

    async def _clean_up(self, before: Service) -> None:
        """Ends what is left of a former daemon's launch; its memory is awaited by the gate before the next start."""
        gone = await do(self._hands, Job.STOP_GROUP, before)
        if not isinstance(gone, GroupGone):
            self._reset(State.WEDGED, gone.why)
            return
        self._hands.handle = None
        stays = before.state in (State.FAILED, State.STOPPED)
        self._reset(before.state if stays else State.STOPPED, before.why if stays else "the daemon was restarted")

    def _reset(self, state: State, why: str) -> None:
        old = self.service
        since = old.since if state is old.state else time.time()
        self.service = Service(
            state, since, why, old.wanted, old.launch, old.was_ready, code=old.code, restarts=old.restarts
        )
        self._save()

    def _apply(self, event: Event, tasks: asyncio.TaskGroup) -> None:
        before = self.service
        self.service, job = step(before, event, self._policy())
        if self.service is before:
            return
        self._note_good()
        self._save()
        if self.service.state is not before.state:
            self._enter(job, tasks)

    def _note_good(self) -> None:
        """Takes the plan by which it is READY as one to go back to."""
        if self.service.state is State.READY and self.plan.plan_id not in self._trials and self.plan not in self.good[-1:]:
            self.good = (*(one for one in self.good if one != self.plan), self.plan)[-GOOD_PLANS:]

    def recent_restarts(self, at: float) -> int:
        """Returns how often it was restarted after faults, within `limits.restart_window_s` before a moment."""
        return len(recent_restarts(self.service, at, self._hands.tools.limits.restart_window_s))

    def _policy(self) -> Policy:
        adopted, limits = self.plan.adopted, self._hands.tools.limits
        # A rank that ends ends the whole, and its head starts that again.
        may_restart = self.plan.seat is None and (adopted is None or adopted.restart)
        return Policy(limits.restarts if may_restart else 0, limits.restart_window_s)

    def _enter(self, job: Job | None, tasks: asyncio.TaskGroup) -> None:
        logger.info("service=%s state=%s why=%s", self.plan.service, self.service.state, self.service.why)
        if self._job is not None:
            self._job.cancel()
        if self.service.state not in BEING_STARTED:
            self._hands.release_turn()
        if self.service.state is State.WAITING_FOR_MEMORY:
            self._hands.plan = self._next_plan
            self._save()
        self._job = tasks.create_task(self._do(job)) if job else None
        self._tell_change()

    def _tell_change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _do(self, job: Job) -> None:
        self._inbox.put_nowait((await do(self._hands, job, self.service), asyncio.current_task()))

    async def _watch(self, running: Running, launch: int) -> None:
        self.post(await await_exit(self._hands, running, launch))

    def _save(self) -> None:
        self._store_problem = self._write(
            SavedService(self.kept_plan, self.service, self._hands.handle, self.good, self._hands.measured)
        )

    def tail(self, count: int) -> list[str]:
        """Returns the last lines that the engine printed."""
        return self._hands.log.tail(count)

    @property
    def was_looked_at(self) -> bool:
        """Tells whether views know what the engine that runs now holds, since its state is what it is."""
        return self._hands.was_looked_at and self._looked_at is self.service

    def look_at_memory(self) -> None:
        """Reads what the engine holds, for views; may be called in a thread."""
        self._looked_at = self.service
        self._hands.look_at_memory()

    def view(self) -> ServiceView:
        """Returns the service as people see it."""
        in_the_way = self._neighbours.in_the_way(self) if self.service.state is State.WAITING_FOR_MEMORY else ()
        return view_of(self._hands, self.service, in_the_way, self._store_problem)
