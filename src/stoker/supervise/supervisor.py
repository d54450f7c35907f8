"""All services of one daemon, side by side, each with its owner."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable

from stoker.errors import Refused, StokerError, WrongUse, service_hint
from stoker.records import RESTING, CardMemory, Plan, SavedService, SavedSwitch, Service, ServiceView, State, SwitchView
from stoker.supervise.containers.sockets import find_engines
from stoker.supervise.hands import Tools
from stoker.supervise.process import SERVERS_SHARE, Group, find_marked, stop_group
from stoker.supervise.room import Room, shares_group
from stoker.supervise.service import ServiceOwner
from stoker.supervise.switching import Switcher

ORPHAN_GRACE_S = 5.0
KILL_LIMIT_S = 10.0
PAUSE_SLACK_S = 30.0
ROOM_LIMIT_S = 10.0
FRESH_S = 1.0  # of what engines hold: who polls more often is told the same
WITH_NEW_ENGINE = frozenset({State.STARTING, State.LOADING, State.PROVING})
GOES = frozenset({State.DRAINING, State.STOPPING, State.SETTLING})


class Supervisor:
    """Keeps one owner a service; `run` lives as long as the daemon."""

    def __init__(
        self,
        tools: Tools,
        saved: Iterable[SavedService],
        save: Callable[[SavedService], str | None],
        keep_switch: Callable[[SavedSwitch | None], None] = lambda saved: None,
    ) -> None:
        self._tools = tools
        self._save = save
        self.owners = {one.plan.service: ServiceOwner(one, tools, save, self) for one in saved}
        self._tasks: asyncio.TaskGroup | None = None
        self._running: dict[str, asyncio.Task[None]] = {}
        self._is_ready = asyncio.Event()
        self._ends = False
        self._switch: asyncio.Task[None] | None = None
        self._card: CardMemory | None = None
        self._looks, self._looked_at = asyncio.Lock(), -math.inf
        self.switcher = Switcher(self, tools.limits.switch_cooldown_s, keep_switch)

    async def run(self, unfinished: SavedSwitch | None = None) -> None:
        """Ends what a former daemon left without an owner, then runs all services until cancelled.

        `unfinished` is the switch during which that daemon ended.
        """
        await self._end_orphans()
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            for name, owner in self.owners.items():
                self._running[name] = tasks.create_task(owner.run())
            if unfinished is not None:
                self.switcher.begin(unfinished, goes_on=True)
                self._switch = tasks.create_task(self.switcher.go_on())
            self._is_ready.set()
            await asyncio.Event().wait()  # services may come later; only a cancellation ends this

    async def await_begun(self) -> None:
        """Returns once all services have their owners, and a switch that goes on has begun."""
        await self._is_ready.wait()

    async def _end_orphans(self) -> None:
        """Ends marked processes of services that the store does not know, as after a lost or replaced database."""
        instance = self._tools.instance
        found = {marker for _, marker in find_marked(f"{instance}/")}
        for marker in found:
            if marker.split("/")[1] not in self.owners:
                await stop_group(Group(marker), ORPHAN_GRACE_S, KILL_LIMIT_S, SERVERS_SHARE)
        if find_engines():  # who has none does not pay for it
            from stoker.supervise.runtimes.container import end_orphan_containers

            await end_orphan_containers(instance, frozenset(self.owners))

    def may_go(self, owner: ServiceOwner) -> bool:
        """Tells whether a service is the one to stop where the memory is short: the last that came up, and only one.

        What is to end anyway goes first, what loads is stopped by the watch over its launch, and what stops gives its
        memory back, if not for long.
        """
        if owner.service.state is State.DRAINING:
            return True
        others = [other for other in self.owners.values() if other is not owner]
        if any(_makes_room(other.service, time.time()) for other in others):
            return False
        return all(_came_up(other) < _came_up(owner) for other in others if other.service.serves)

    async def start(self, plan: Plan, why: str, *, is_trial: bool = False) -> ServiceOwner:
        """Asks for a service to run by this plan, and returns its owner once the state shows it.

        Raises Refused where another service of its group is up, or a switch is under way that it would undo.
        """
        await self._is_ready.wait()
        self.switcher.check_start(plan)
        return await self.bring_up(plan, why, is_trial=is_trial)

    async def bring_up(self, plan: Plan, why: str, *, is_trial: bool = False) -> ServiceOwner:
        """Starts as `start` does, for a switch."""
        self._check_group(plan)
        if self._ends:
            raise Refused("the daemon is ending", next_step="`stoker up` again starts the next one")
        owner = self.owners.get(plan.service) or self._add(plan)
        owner.ask_start(plan, why, is_trial=is_trial)
        await owner.await_handled()
        return owner

    def _check_group(self, plan: Plan) -> None:
        if others := [owner for owner in self._busy(plan.service) if shares_group(plan, owner)]:
            name, state = others[0].plan.service, others[0].service.state
            raise Refused(
                f"{name} is {'up' if state is State.READY else state}, and of the group `{plan.group}` only one may be up",
                next_step=f"`stoker switch {plan.service}` stops it first; `stoker down {name}` does so alone",
            )

    def _busy(self, but_not: str) -> list[ServiceOwner]:
        """Returns the owners of all other services that have an engine, or are about to."""
        return [one for name, one in self.owners.items() if name != but_not and one.is_busy]

    async def switch(self, plan: Plan) -> SwitchView:
        """Begins to put a service in the place of those that leave it no room, or are of its group."""
        await self._is_ready.wait()
        self.switcher.check_none()
        if self._tasks is None or self._ends:
            raise Refused("the daemon is ending", next_step="`stoker switch` again once the next one runs")
        owner, now = self.owners.get(plan.service), time.time()
        if owner is not None and owner.is_ready_by(plan):
            why = f"{plan.service} is READY already"
            return SwitchView(plan.service, now, (), plan.plan_id, outcome="ready", why=why, ended=now)
        view = self.switcher.begin(self.prepare(plan))
        self._switch = self._tasks.create_task(self.switcher.run(plan))
        return view

    def prepare(self, plan: Plan) -> SavedSwitch:
        """Returns who has to stop for a plan, and what to go back to; raises Refused where there can be no room."""
        goes = self.who_goes(plan)
        ran = [self.owners[name] for name in (*goes, plan.service) if name in self.owners]
        before = (one.kept_plan for one in ran if one.is_busy and one.service.wanted)
        return SavedSwitch(plan, goes, tuple(one for one in before if one != plan))

    def who_goes(self, plan: Plan, *, by_last_look: bool = False) -> tuple[str, ...]:
        """Returns the services that have to stop for a plan; raises Refused where not even that makes room."""
        return self.room(by_last_look=by_last_look).who_goes(plan)

    def room(self, *, by_last_look: bool = False) -> Room:
        """Returns the memory and what engines hold at this moment; `by_last_look`: to be shown, as they were last seen."""
        read_card = (lambda: self._card) if by_last_look else self._tools.read_card
        memory, floor_bytes = self._tools.read_memory(), self._tools.limits.memory_floor_bytes
        return Room(self.owners, memory, floor_bytes, read_card, by_last_look=by_last_look)

    def in_the_way(self, owner: ServiceOwner) -> tuple[str, ...]:
        """Returns the services that a switch would stop for one that waits for memory; none where that would not help."""
        try:
            return self.who_goes(owner.plan, by_last_look=True)
        except StokerError:
            return ()

    def _add(self, plan: Plan) -> ServiceOwner:
        fresh = SavedService(plan, Service(State.STOPPED, time.time(), "it is new"))
        owner = self.owners[plan.service] = ServiceOwner(fresh, self._tools, self._save, self)
        if self._tasks is not None:
            self._running[plan.service] = self._tasks.create_task(owner.run())
        return owner

    async def forget(self, name: str) -> None:
        """Drops a service that rests; raises Refused where it does not."""
        await self._is_ready.wait()
        owner = self.find(name)
        if owner.is_busy:
            raise Refused(f"{name} is {owner.service.state}", next_step=f"stop it first: `stoker down {name}`")
        self._running.pop(name).cancel()
        del self.owners[name]

    def find(self, name: str, say: str = "name") -> ServiceOwner:
        """Returns a service's owner; raises WrongUse with the name that is meant, `say` before it, or those that exist."""
        if name not in self.owners:
            models = {service: owner.plan.model for service, owner in sorted(self.owners.items())}
            hint = service_hint(name, models, f"services here: {', '.join(models) or 'none yet'}", say)
            raise WrongUse(f"there is no service called `{name}`", next_step=hint)
        return self.owners[name]

    async def look_at_memory(self) -> None:
        """Reads what the engines hold, as views tell it, unless that was done a moment ago.

        In a thread: a look at 500 processes takes 15 to 30 ms, in which no stream would go on.
        """
        async with self._looks:
            owners, now = list(self.owners.values()), asyncio.get_running_loop().time()
            if now - self._looked_at < FRESH_S and all(owner.was_looked_at for owner in owners):
                return
            await asyncio.to_thread(_look_at, owners)
            if any(owner.plan.card_need_bytes for owner in owners):
                self._card = await asyncio.to_thread(self._tools.read_card)
                for owner in owners:
                    owner.note_card(self._card)
            self._looked_at = now

    def views(self) -> tuple[ServiceView, ...]:
        """Returns all services as people see them, by name."""
        return tuple(owner.view() for _, owner in sorted(self.owners.items()))

    def stop(self, name: str, why: str) -> ServiceOwner:
        """Asks for a service to stop, and returns its owner; no switch goes back to it."""
        owner = self.find(name, "stoker down")
        self.switcher.leave_out(name)
        owner.ask_stop(why)
        return owner

    async def pause(self, why: str) -> None:
        """Ends all engines for the daemon's own end; what was up is started again by the next daemon.

        What was adopted runs on, since nobody could start it again: the next daemon finds it.
        """
        limits, self._ends = self._tools.limits, True
        if self._switch is not None:
            self._switch.cancel()
        end = time.monotonic() + limits.drain_s + limits.stop_grace_s + PAUSE_SLACK_S
        ours = [owner for owner in self.owners.values() if not owner.is_foreign]
        for owner in ours:
            owner.ask_pause(why)
            await owner.await_handled()
        for owner in ours:
            while owner.service.state not in RESTING and time.monotonic() < end:
                await owner.await_change(limit_s=1.0)


def _makes_room(service: Service, now: float) -> bool:
    comes = service.state in WITH_NEW_ENGINE and not service.serves
    return comes or (service.state in GOES and now - service.since < ROOM_LIMIT_S)


def _came_up(owner: ServiceOwner) -> tuple[float, str]:
    return owner.service.since, owner.plan.service


def _look_at(owners: Iterable[ServiceOwner]) -> None:
    for owner in owners:
        owner.look_at_memory()
