"""Puts one service in the place of others: they drain and stop, their memory comes back, it starts and proves itself.

If it does not, what ran before is started again. One switch at a time, and none right after the last.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Protocol

import msgspec

from stoker.errors import Refused, StokerError
from stoker.records import RESTING, Plan, ServiceView, State, SwitchOutcome, SwitchView
from stoker.supervise.service import ServiceOwner

LOOK_S = 1.0


class Services(Protocol):
    """What a switch needs of the supervisor."""

    async def start(self, plan: Plan, why: str) -> ServiceOwner:
        """Asks for a service to run by this plan."""

    def find(self, name: str) -> ServiceOwner:
        """Returns a service's owner."""


class Switcher:
    """Carries out one switch after the other; `view` is the last one, under way or over."""

    def __init__(self, services: Services, cooldown_s: float) -> None:
        self.view: SwitchView | None = None
        self._services = services
        self._cooldown_s = cooldown_s
        self._changed = asyncio.Event()

    def begin(self, plan: Plan, goes: Sequence[str]) -> SwitchView:
        """Notes that a switch begins; raises Refused while another is under way."""
        if self.view is not None and self.view.outcome is None:
            raise Refused(
                f"a switch to {self.view.service} is under way",
                why="two at once would stop what the other has just started",
                next_step="wait until `stoker status` shows it READY",
            )
        last, now = self.view, time.time()
        self.view = SwitchView(service=plan.service, since=now, goes=tuple(goes), plan_id=plan.plan_id)
        if last is not None and last.ended is not None:
            wait_s = self._cooldown_s - (now - last.ended)
            if wait_s > 0:
                self._say(
                    f"waits {wait_s:.0f} s: the last switch has only just ended (switch_cooldown_s)", until=now + wait_s
                )
        return self.view

    async def run(self, plan: Plan) -> None:
        """Carries out the switch that was begun; however it goes, `view` has its outcome in the end."""
        view = _known(self.view)
        before = [self._services.find(name).plan for name in view.goes]
        try:
            await asyncio.sleep(max(0.0, (view.waits_until or 0.0) - time.time()))
            await self._stop(before, f"{plan.service} takes its place")
            ready = await self._start(plan, "a switch to it was asked for")
            if ready.state is State.READY:
                self._end("ready", f"{plan.service} is READY", 0)
            else:
                await self._roll_back(before, f"{plan.service} is {ready.state}: {ready.why}", ready.exit_code or 1)
        except StokerError as problem:
            await self._roll_back(before, problem.what, problem.exit_code)
        finally:
            if self.view is not None and self.view.outcome is None:
                self._end("failed", "the daemon was told to end", 1)

    async def await_change(self, seen: int, limit_s: float) -> SwitchView | None:
        """Returns the switch once it has more steps than were seen, or as it is when the limit is over."""
        if self.view is not None and len(self.view.steps) <= seen and self.view.outcome is None:
            changed = self._changed
            try:
                async with asyncio.timeout(limit_s):
                    await changed.wait()
            except TimeoutError:
                pass
        return self.view

    async def _stop(self, plans: Sequence[Plan], why: str) -> None:
        for plan in plans:
            owner = self._services.find(plan.service)
            self._say(f"stops {plan.service}")
            owner.ask_stop(why)
            await owner.await_handled()
            await _await_rest(owner, RESTING)
            if owner.service.state is State.WEDGED:
                raise StokerError(f"{plan.service} is {owner.service.state}: {owner.service.why}")

    async def _start(self, plan: Plan, why: str) -> ServiceView:
        self._say(f"starts {plan.service}")
        owner = await self._services.start(plan, why)
        await _await_rest(owner, RESTING | {State.READY})
        return owner.view()

    async def _roll_back(self, before: Sequence[Plan], why: str, code: int) -> None:
        if not before:
            self._end("failed", why, code)
            return
        names = ", ".join(plan.service for plan in before)
        self._say(f"rolls back to {names}, since {why}")
        views = [await self._start(plan, "the switch away from it failed") for plan in before]
        lost = [f"{view.name} is {view.state}: {view.why}" for view in views if view.state is not State.READY]
        if lost:
            self._end("failed", f"{why}; and {'; '.join(lost)}", code)
        else:
            self._end("rolled back", f"{why}; {names} is READY again", code)

    def _say(self, step: str, until: float | None = None) -> None:
        view = _known(self.view)
        self._set(msgspec.structs.replace(view, steps=(*view.steps, step), waits_until=until or view.waits_until))

    def _end(self, outcome: SwitchOutcome, why: str, code: int) -> None:
        self._set(msgspec.structs.replace(_known(self.view), outcome=outcome, why=why, exit_code=code, ended=time.time()))

    def _set(self, view: SwitchView) -> None:
        self.view = view
        self._changed.set()
        self._changed = asyncio.Event()


def is_beside(plan: Plan, other: Plan) -> bool:
    """Tells whether two plans are of one group, of which only one service is up at a time."""
    return plan.group is not None and plan.group == other.group


async def _await_rest(owner: ServiceOwner, states: frozenset[State]) -> None:
    while owner.service.state not in states:
        await owner.await_change(LOOK_S)


def _known(view: SwitchView | None) -> SwitchView:
    if view is None:
        raise StokerError("no switch was begun")
    return view
