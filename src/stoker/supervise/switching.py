"""Puts one service in the place of others: they drain and stop, their memory comes back, it starts and proves itself.

If it does not, what ran before is started again. One switch at a time, and none right after the last. What is not over is
kept, so that the next daemon goes on with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

import msgspec

from stoker.errors import Refused, StokerError
from stoker.records import RESTING, Plan, SavedSwitch, ServiceView, State, SwitchOutcome, SwitchView
from stoker.supervise.service import ServiceOwner

LOOK_S = 1.0
T = TypeVar("T")
Keep = Callable[[SavedSwitch | None], None]
logger = logging.getLogger("stoker.supervise")


class Services(Protocol):
    """What a switch needs of the supervisor."""

    async def bring_up(self, plan: Plan, why: str) -> ServiceOwner:
        """Asks for a service to run by this plan."""

    def find(self, name: str) -> ServiceOwner:
        """Returns a service's owner."""

    def prepare(self, plan: Plan) -> SavedSwitch:
        """Returns who has to stop for a plan, and what to go back to."""


class Switcher:
    """Carries out one switch after the other; `view` is the last one, under way or over."""

    def __init__(self, services: Services, cooldown_s: float, keep: Keep) -> None:
        self.view: SwitchView | None = None
        self._former: SwitchView | None = None
        self._saved: SavedSwitch | None = None
        self._is_unwanted = False
        self._services = services
        self._cooldown_s = cooldown_s
        self._keep = keep
        self._changed = asyncio.Event()

    def check_none(self) -> None:
        """Raises Refused while a switch is under way."""
        if self._is_under_way():
            raise Refused(
                f"a switch to {_known(self.view).service} is under way",
                why="two at once would stop what the other has just started",
                next_step="wait until `stoker status` shows it READY",
            )

    def check_start(self, plan: Plan) -> None:
        """Raises Refused where a start would undo what a switch is doing."""
        saved = self._saved
        if saved is None or saved.plan.service == plan.service:
            return
        if plan.service in saved.goes or is_beside(plan, saved.plan):
            raise Refused(
                f"a switch to {saved.plan.service} is under way, and {plan.service} makes room for it",
                next_step=f"wait until {saved.plan.service} is READY (`stoker status`), then `stoker switch {plan.service}`",
            )

    def _is_under_way(self) -> bool:
        return self.view is not None and self.view.outcome is None

    def begin(self, saved: SavedSwitch, goes_on: bool = False) -> SwitchView:
        """Notes that a switch begins; raises Refused while another is under way."""
        self.check_none()
        self._former, now = self.view, time.time()
        self._saved, self._is_unwanted = saved, False
        self._keep(saved)
        self.view = SwitchView(service=saved.plan.service, since=now, goes=saved.goes, plan_id=saved.plan.plan_id)
        if goes_on:
            self._say(f"goes on with the switch to {saved.plan.service}, during which the daemon ended")
        elif wait_s := self._cooldown_left_s(now):
            self._say(
                f"waits {math.ceil(wait_s)} s: the last switch has only just ended (switch_cooldown_s)", until=now + wait_s
            )
        return _known(self.view)

    def _cooldown_left_s(self, now: float) -> float:
        ended = self._former.ended if self._former else None
        if ended is None:
            return 0.0
        return max(0.0, min(self._cooldown_s, self._cooldown_s - (now - ended)))  # the clock may have been set back

    async def run(self, plan: Plan) -> None:
        """Carries out the switch that was begun; however it goes, `view` has its outcome in the end."""
        with self._ending():
            if (until := _known(self.view).waits_until) is not None:
                await asyncio.sleep(min(self._cooldown_s, max(0.0, until - time.time())))
                self._saved = self._services.prepare(plan)  # others may be up by now
                self._set(msgspec.structs.replace(_known(self.view), goes=self._saved.goes))
            await self._carry_out()

    async def go_on(self) -> None:
        """Goes on with the switch that was begun, from where a former daemon left it."""
        with self._ending():
            saved = _known(self._saved)
            if saved.back_because:
                await self._roll_back(saved.back_because, saved.code)
            else:
                await self._carry_out()

    def leave_out(self, name: str) -> None:
        """Notes that somebody wants a service down: a switch does not go back to it, and one to it does not start it."""
        if self._saved is not None:
            self._is_unwanted |= name == self._saved.plan.service
            self._remember(before=tuple(plan for plan in self._saved.before if plan.service != name))

    def give_up(self) -> None:
        """Forgets the switch that is under way: no daemon goes on with it."""
        self._saved = None
        self._keep(None)

    async def await_change(self, seen: int, since: float, limit_s: float) -> SwitchView | None:
        """Returns the switch begun at `since` (0: the last) once it has more steps than were seen or the limit is over."""
        if since and self._former is not None and self._former.since == since:
            return self._former
        if self.view is not None and len(self.view.steps) <= seen and self.view.outcome is None:
            changed = self._changed
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(limit_s):
                    await changed.wait()
        return self._former if since and self._former is not None and self._former.since == since else self.view

    @contextlib.contextmanager
    def _ending(self) -> Iterator[None]:
        """Sees to it that a switch has an outcome, and that its fault ends nothing but itself."""
        try:
            yield
        except StokerError as problem:
            self._end("failed", problem.what, problem.exit_code)
        except Exception as problem:
            logger.exception("switch=%s", _known(self.view).service)
            self._end("failed", _own_fault(problem), 1)
        finally:
            if self._is_under_way():  # the daemon ends: what is kept is for the next one
                self._finish("failed", "the daemon was told to end; the next one goes on with it", 1)

    async def _carry_out(self) -> None:
        saved = _known(self._saved)
        self._remember()
        if (fault := await self._try(saved)) is None:
            self._end("ready", f"{saved.plan.service} is READY", 0)
        else:
            await self._roll_back(*fault)

    async def _try(self, saved: SavedSwitch) -> tuple[str, int] | None:
        """Stops who goes and starts who comes; returns why that did not lead to READY, with its exit code."""
        try:
            await self._stop(saved.goes, f"{saved.plan.service} takes its place")
            if self._is_unwanted:
                raise StokerError(f"{saved.plan.service} was asked to stop meanwhile")  # noqa: TRY301
            view = await self._start(saved.plan, "a switch to it was asked for")
        except StokerError as problem:
            return problem.what, problem.exit_code
        except Exception as problem:
            logger.exception("switch=%s", saved.plan.service)
            return _own_fault(problem), 1
        return None if view.state is State.READY else (f"{view.name} is {view.state}: {view.why}", view.exit_code or 1)

    async def _stop(self, names: Sequence[str], why: str) -> None:
        """Stops all at once: the longest of their last requests is waited for, not one after the other."""
        owners = [self._services.find(name) for name in names]
        for owner in owners:
            self._say(f"stops {owner.plan.service}")
            owner.ask_stop(why)
        for owner in owners:
            await owner.await_handled()
            await _await_rest(owner, RESTING)
        if wedged := [owner.plan.service for owner in owners if owner.service.state is State.WEDGED]:
            raise StokerError(f"{wedged[0]} is WEDGED: {self._services.find(wedged[0]).service.why}")

    async def _start(self, plan: Plan, why: str) -> ServiceView:
        self._say(f"starts {plan.service}")
        owner = await self._services.bring_up(plan, why)
        await _await_rest(owner, RESTING | {State.READY})
        return owner.view()

    async def _roll_back(self, why: str, code: int) -> None:
        self._remember(back_because=why, code=code)
        before = _known(self._saved).before
        if not before:
            self._end("failed", why, code)
            return
        names = ", ".join(plan.service for plan in before)
        self._say(f"rolls back to {names}, since {why}")
        lost = [lost for plan in before if (lost := await self._bring_back(plan)) is not None]
        if lost:
            self._end("failed", f"{why}; and {'; '.join(lost)}", code)
        else:
            self._end("rolled back", f"{why}; {names} {'are' if len(before) > 1 else 'is'} READY again", code)

    async def _bring_back(self, plan: Plan) -> str | None:
        """Starts one of those that ran before; returns what became of it where it is not READY."""
        if plan not in _known(self._saved).before:
            return f"{plan.service} was asked to stop meanwhile"
        try:
            view = await self._start(plan, "the switch away from it failed")
        except StokerError as problem:
            return f"{plan.service} was not started: {problem.what}"
        return None if view.state is State.READY else f"{view.name} is {view.state}: {view.why}"

    def _remember(self, **changes: object) -> None:
        if self._saved is not None:
            self._saved = msgspec.structs.replace(self._saved, **changes)
            self._keep(self._saved)

    def _say(self, step: str, until: float | None = None) -> None:
        view = _known(self.view)
        self._set(msgspec.structs.replace(view, steps=(*view.steps, step), waits_until=until or view.waits_until))

    def _end(self, outcome: SwitchOutcome, why: str, code: int) -> None:
        self.give_up()
        self._finish(outcome, why, code)

    def _finish(self, outcome: SwitchOutcome, why: str, code: int) -> None:
        logger.info("switch=%s outcome=%s why=%s", _known(self.view).service, outcome, why)
        self._set(msgspec.structs.replace(_known(self.view), outcome=outcome, why=why, exit_code=code, ended=time.time()))

    def _set(self, view: SwitchView) -> None:
        self.view = view
        self._changed.set()
        self._changed = asyncio.Event()


def is_beside(plan: Plan, other: Plan) -> bool:
    """Tells whether two plans are of one group, of which only one service is up at a time."""
    return plan.group is not None and plan.group == other.group


def _own_fault(problem: Exception) -> str:
    return f"Stoker itself failed ({type(problem).__name__}: {problem}); see daemon.log"


async def _await_rest(owner: ServiceOwner, states: frozenset[State]) -> None:
    while owner.service.state not in states:
        await owner.await_change(LOOK_S)


def _known(found: T | None) -> T:
    if found is None:
        raise StokerError("the switch was given up", why="everything was asked to stop")
    return found
