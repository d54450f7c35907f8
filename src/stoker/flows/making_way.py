"""How a request's service comes up: started where there is room, else in the place of others, by the switch that people use.

It takes nothing from a workflow, nor from who asks a program without the gateway; and what it stops has had its time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from stoker.errors import Refused, StokerError
from stoker.flows.idle import is_asked_directly
from stoker.flows.menu import Menu
from stoker.plan.idle import ON_PURPOSE
from stoker.records import BEING_STARTED, RESTING, Plan, RunningView, State, Wish
from stoker.supervise.service import ServiceOwner
from stoker.supervise.supervisor import Supervisor

LOOK_S = 1.0
WHY = "a request named it"
OWN = "its engine"  # its state is told beside it
Say = Callable[[str], None]


class MakingWay:
    """Brings one service after the other; `plan` plans a wish and checks that its model's name is free."""

    def __init__(
        self, menu: Menu, supervisor: Supervisor, residence_s: float,
        plan: Callable[[Wish], Awaitable[Plan]], read_run: Callable[[], RunningView | None],
    ) -> None:  # fmt: skip
        self._menu = menu
        self._supervisor = supervisor
        self._residence_s = residence_s
        self._plan = plan
        self._read_run = read_run
        self._turn = asyncio.Lock()
        self._whose = ""

    def is_up(self, service: str) -> bool:
        """Tells whether a service answers."""
        owner = self._supervisor.owners.get(service)
        return owner is not None and owner.endpoint is not None

    def check(self, service: str) -> Wish:
        """Returns the wish of a service that a request may start now; raises Refused for one that it may not."""
        wish, owner = self._menu.wish(service), self._supervisor.owners.get(service)
        if wish is None or not self._menu.door(service).on_demand:
            raise Refused(
                f"{service} is not started by requests",
                next_step=f"`stoker up {service}`, or set on_demand = true in [service.{service}]",
            )
        if owner is not None and owner.service.state is State.STOPPED and owner.service.why == ON_PURPOSE:
            raise Refused(f"{service} was taken down by hand", next_step=f"`stoker up {service}` brings it back")
        if (run := self._read_run()) is not None and not _comes(owner):
            raise Refused(
                f"the workflow `{run.workflow}` holds the machine (pid {run.pid})",
                why=f"{service} could take the service away that one of its steps needs",
                next_step="ask again when it is over",
            )
        return wish

    async def bring(self, service: str, say: Say) -> None:
        """Returns once a service is READY. `say` is told what is waited for.

        Raises Refused where nothing was begun, and another StokerError where the service did not come up.
        """
        if self._turn.locked():
            say(f"{self._whose} to come up first")
        async with self._turn:
            self._whose = service
            if await self._comes_anyway(service, say):
                return
            say("its plan")
            plan = await self._plan(self.check(service))
            await self._make_way(plan, say)
            self.check(service)  # what was waited for may have taken long
            await self._start(plan, say)

    async def _comes_anyway(self, service: str, say: Say) -> bool:
        """Waits as long as a service is on its way up or down; tells whether it is READY in the end."""
        while (owner := self._supervisor.owners.get(service)) is not None and owner.is_busy:
            if owner.endpoint is not None:
                return True
            if owner.service.state in (*RESTING, State.WAITING_FOR_MEMORY) and not self._is_switching():
                return False
            say(OWN)
            await owner.await_change(LOOK_S)
        return False

    def _is_switching(self) -> bool:
        view = self._supervisor.switcher.view
        return view is not None and view.outcome is None

    async def _make_way(self, plan: Plan, say: Say) -> None:
        """Returns once those that have to go for a plan may; raises Refused where one of them may not."""
        switcher = self._supervisor.switcher
        while True:
            if (view := switcher.view) is not None and view.outcome is None:
                say(f"the switch to {view.service}, which is under way")
                await switcher.await_change(len(view.steps), view.since, LOOK_S)
            elif waits := self._why_not_yet(plan):
                say(waits[0])
                await asyncio.sleep(min(waits[1], LOOK_S))
            else:
                return

    def _why_not_yet(self, plan: Plan) -> tuple[str, float] | None:
        """Returns what a switch to a plan waits for and for how long at most; None where it may begin."""
        for name in self._supervisor.who_goes(plan):
            owner = self._supervisor.find(name)
            _check_may_go(owner)
            if owner.service.state in BEING_STARTED:
                return f"{name}, which is {owner.service.state}", LOOK_S
            left_s = self._residence_s - (time.time() - owner.service.since)
            if owner.service.state is State.READY and 0 < left_s <= self._residence_s:
                return f"{name} to have been up for {self._residence_s:g} s (switch_cooldown_s)", left_s
        return None

    async def _start(self, plan: Plan, say: Say) -> None:
        if self._supervisor.who_goes(plan):
            await self._switch(plan, say)
            return
        owner = await self._supervisor.start(plan, WHY)
        while (state := owner.service.state) not in RESTING | {State.READY}:
            say(OWN)
            await owner.await_change(LOOK_S)
        if state is not State.READY:
            raise StokerError(f"{plan.service} is {state}: {owner.service.why}", next_step=_see_logs(plan))

    async def _switch(self, plan: Plan, say: Say) -> None:
        view = await self._supervisor.switch(plan)
        while view.outcome is None:
            say(f"the switch to it: {view.steps[-1]}" if view.steps else "the switch to it")
            view = await self._supervisor.switcher.await_change(len(view.steps), view.since, LOOK_S) or view
        if view.outcome != "ready":
            raise StokerError(f"{plan.service} did not take its place", why=view.why, next_step=_see_logs(plan))


def _see_logs(plan: Plan) -> str:
    return f"`stoker logs {plan.service}` shows why"


def _comes(owner: ServiceOwner | None) -> bool:
    return owner is not None and owner.service.state not in RESTING


def _check_may_go(owner: ServiceOwner) -> None:
    """Raises Refused for what a request may not stop, though a person may, by `stoker switch`."""
    name = owner.plan.service
    if owner.plan.adopted is not None and not owner.plan.adopted.restart:
        raise Refused(f"{name} would have to stop, and nobody could start it again", why="it was adopted as it ran")
    if is_asked_directly(owner.view()):
        raise Refused(f"{name} would have to stop, and it has connections at its port", next_step="ask again later")
