"""All services of one daemon, side by side, each with its owner."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

from stoker.errors import Refused, WrongUse
from stoker.plan.room import Claim, to_stop
from stoker.records import BEING_STARTED, RESTING, Plan, SavedService, Service, ServiceView, State, SwitchView, say_bytes
from stoker.supervise.containers.sockets import find_engines
from stoker.supervise.hands import Tools
from stoker.supervise.process import Group, find_marked, stop_group
from stoker.supervise.service import ServiceOwner
from stoker.supervise.switching import Switcher, is_beside

ORPHAN_GRACE_S = 5.0
KILL_LIMIT_S = 10.0
PAUSE_SLACK_S = 30.0
COMES_OR_GOES = BEING_STARTED | {State.DRAINING, State.STOPPING, State.SETTLING}


class Supervisor:
    """Keeps one owner a service; `run` lives as long as the daemon."""

    def __init__(self, tools: Tools, saved: Iterable[SavedService], save: Callable[[SavedService], str | None]) -> None:
        self._tools = tools
        self._save = save
        self.owners = {one.plan.service: ServiceOwner(one, tools, save, self._may_go) for one in saved}
        self._tasks: asyncio.TaskGroup | None = None
        self._running: dict[str, asyncio.Task[None]] = {}
        self._is_ready = asyncio.Event()
        self.switcher = Switcher(self, tools.limits.switch_cooldown_s)

    async def run(self) -> None:
        """Ends what a former daemon left without an owner, then runs all services until cancelled."""
        await self._end_orphans()
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            for name, owner in self.owners.items():
                self._running[name] = tasks.create_task(owner.run())
            self._is_ready.set()
            await asyncio.Event().wait()  # services may come later; only a cancellation ends this

    async def _end_orphans(self) -> None:
        """Ends marked processes of services that the store does not know, as after a lost or replaced database."""
        instance = self._tools.instance
        found = {marker for _, marker in find_marked(f"{instance}/")}
        for marker in found:
            if marker.split("/")[1] not in self.owners:
                await stop_group(Group(marker), ORPHAN_GRACE_S, KILL_LIMIT_S)
        if find_engines():  # who has none does not pay for it
            from stoker.supervise.runtimes.container import end_orphan_containers

            await end_orphan_containers(instance, frozenset(self.owners))

    def _may_go(self, owner: ServiceOwner) -> bool:
        """Tells whether a service is the one to stop where the memory is short: the last that came up, and only one."""
        others = [other.service for other in self.owners.values() if other is not owner]
        if any(other.state in COMES_OR_GOES for other in others):
            return False  # what loads is stopped first, and what stops gives its memory back
        return all(other.since <= owner.service.since for other in others if other.state is State.READY)

    async def start(self, plan: Plan, why: str) -> ServiceOwner:
        """Asks for a service to run by this plan, and returns its owner once the state shows it.

        Raises Refused where another service of its group is up.
        """
        await self._is_ready.wait()
        self._check_group(plan)
        owner = self.owners.get(plan.service) or self._add(plan)
        owner.ask_start(plan, why)
        await owner.await_handled()
        return owner

    def _check_group(self, plan: Plan) -> None:
        if others := [owner.plan.service for owner in self._busy(plan.service) if is_beside(plan, owner.plan)]:
            raise Refused(
                f"{others[0]} is up, and of the group `{plan.group}` only one service may be",
                next_step=f"`stoker switch {plan.service}` stops it first; `stoker down {others[0]}` does so alone",
            )

    def _busy(self, but_not: str) -> list[ServiceOwner]:
        """Returns the owners of all other services that have an engine, or are about to."""
        gone = (State.STOPPED, State.FAILED)
        return [one for name, one in self.owners.items() if name != but_not and one.service.state not in gone]

    async def switch(self, plan: Plan) -> SwitchView:
        """Begins to put a service in the place of those that leave it no room, or are of its group."""
        await self._is_ready.wait()
        if self._tasks is None:
            raise Refused("the daemon is ending")
        view = self.switcher.begin(plan, self.who_goes(plan))
        self._tasks.create_task(self.switcher.run(plan))
        return view

    def who_goes(self, plan: Plan) -> tuple[str, ...]:
        """Returns the services that have to stop for a plan; raises Refused where not even that makes room."""
        busy = self._busy(plan.service)
        group = [owner for owner in busy if is_beside(plan, owner.plan)]
        back_bytes = sum(owner.held_bytes for owner in group)
        own = self.owners.get(plan.service)
        if own is not None and own.service.state not in (State.STOPPED, State.FAILED):
            back_bytes += own.held_bytes
        claims = [Claim(owner.plan.service, owner.held_bytes) for owner in busy if owner not in group]
        need_bytes = plan.memory_need_bytes + self._tools.limits.memory_floor_bytes
        memory = self._tools.read_memory()
        more = to_stop(need_bytes, min(memory.total_bytes, memory.available_bytes + back_bytes), claims)
        if more is None:
            raise Refused(
                f"{plan.service} needs {say_bytes(need_bytes)} with what is kept for the system,"
                " and there would not be as much if all services stopped",
                why=f"{say_bytes(memory.available_bytes)} of {say_bytes(memory.total_bytes)} are available now",
                next_step="end other programs, or plan for less: a smaller model, context or number of requests",
            )
        return (*(owner.plan.service for owner in group), *more)

    def _add(self, plan: Plan) -> ServiceOwner:
        fresh = SavedService(plan, Service(State.STOPPED, time.time(), "it is new"))
        owner = self.owners[plan.service] = ServiceOwner(fresh, self._tools, self._save, self._may_go)
        if self._tasks is not None:
            self._running[plan.service] = self._tasks.create_task(owner.run())
        return owner

    async def forget(self, name: str) -> None:
        """Drops a service that rests; raises Refused where it does not."""
        await self._is_ready.wait()
        owner = self.find(name)
        if owner.service.state not in (State.STOPPED, State.FAILED):
            raise Refused(f"{name} is {owner.service.state}", next_step=f"stop it first: `stoker down {name}`")
        self._running.pop(name).cancel()
        del self.owners[name]

    def find(self, name: str) -> ServiceOwner:
        """Returns a service's owner; raises WrongUse with the names that exist."""
        if name not in self.owners:
            known = ", ".join(sorted(self.owners)) or "none yet"
            raise WrongUse(f"there is no service called `{name}`", next_step=f"services here: {known}")
        return self.owners[name]

    def views(self) -> tuple[ServiceView, ...]:
        """Returns all services as people see them, by name."""
        return tuple(owner.view() for _, owner in sorted(self.owners.items()))

    async def pause(self, why: str) -> None:
        """Ends all engines for the daemon's own end; what was up is started again by the next daemon.

        What was adopted runs on, since nobody could start it again: the next daemon finds it.
        """
        limits = self._tools.limits
        end = time.monotonic() + limits.drain_s + limits.stop_grace_s + PAUSE_SLACK_S
        ours = [owner for owner in self.owners.values() if not owner.is_foreign]
        for owner in ours:
            owner.ask_pause(why)
            await owner.await_handled()
        for owner in ours:
            while owner.service.state not in RESTING and time.monotonic() < end:
                await owner.await_change(limit_s=1.0)
