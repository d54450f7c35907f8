"""All services of one daemon, side by side, each with its owner."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

from stoker.errors import Refused, WrongUse
from stoker.records import BEING_STARTED, RESTING, Plan, SavedService, Service, ServiceView, State
from stoker.supervise.hands import Tools
from stoker.supervise.process import Group, find_marked, stop_group
from stoker.supervise.service import ServiceOwner

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

    def _may_go(self, owner: ServiceOwner) -> bool:
        """Tells whether a service is the one to stop where the memory is short: the last that came up, and only one."""
        others = [other.service for other in self.owners.values() if other is not owner]
        if any(other.state in COMES_OR_GOES for other in others):
            return False  # what loads is stopped first, and what stops gives its memory back
        return all(other.since <= owner.service.since for other in others if other.state is State.READY)

    async def start(self, plan: Plan, why: str) -> ServiceOwner:
        """Asks for a service to run by this plan, and returns its owner once the state shows it."""
        await self._is_ready.wait()
        owner = self.owners.get(plan.service) or self._add(plan)
        owner.ask_start(plan, why)
        await owner.await_handled()
        return owner

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
        """Ends all engines for the daemon's own end; what was up is started again by the next daemon."""
        limits = self._tools.limits
        end = time.monotonic() + limits.drain_s + limits.stop_grace_s + PAUSE_SLACK_S
        for owner in self.owners.values():
            owner.ask_pause(why)
            await owner.await_handled()
        for owner in self.owners.values():
            while owner.service.state not in RESTING and time.monotonic() < end:
                await owner.await_change(limit_s=1.0)
