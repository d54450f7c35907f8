"""Does about an alert what `[watch.act]` says, and nothing else: once when it fires, and within bounds.

A restart may come `limits.restarts` times a day for one alert; what changes the plan or stops comes once, since a second
rollback would lead back to what the first one left. After any act about a service the next waits: two alerts about one fault
are one fault.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping

import msgspec

from stoker.errors import Refused, StokerError, WrongUse
from stoker.flows.menu import Menu
from stoker.plan.wishes import DRAFTING
from stoker.records import Plan, State, SwitchView, Wish
from stoker.records.proposals import Audited
from stoker.records.watching import Acted, ActKind, Alert, WatchSettings
from stoker.supervise.machine import RestartAsked
from stoker.supervise.supervisor import Supervisor
from stoker.watch.table import find_alert

DAY_S = 86400.0
WHO = "watch.act"
NOTHING = "nothing"
WORDS: Mapping[ActKind, str] = {
    "restart": "it is restarted, once its requests have ended and its memory is back",
    "speculation off": "it is started anew without speculation",
    "rollback": "it goes back to the plan by which it was READY before",
    "stop": "it is stopped",
}
MINUTE_S = 60.0
logger = logging.getLogger("stoker.watch")


def check_acts(settings: WatchSettings, source: str | None) -> None:
    """Raises WrongUse where an act is for an alert that does not exist, or is about no service."""
    for alert in settings.act:
        if "{service}" not in find_alert(alert).title:
            raise WrongUse(
                f"{source}: nothing can be done about `{alert}` by itself", why="it is not about a service",
                next_step="take it out of [watch.act]; the memory's floor is defended anyway (limits.memory_floor_bytes)",
            )  # fmt: skip


class Acts:
    """The uses that acts are made of. `most` is how often an alert may have a service restarted in a day."""

    def __init__(
        self, settings: WatchSettings, supervisor: Supervisor, menu: Menu, most: int,
        plan: Callable[[Wish], Awaitable[Plan]], rollback: Callable[[str], Awaitable[SwitchView]],
        record: Callable[[Audited], None],
    ) -> None:  # fmt: skip
        self._settings = settings
        self._supervisor = supervisor
        self._menu = menu
        self._most = most
        self._plan = plan
        self._rollback = rollback
        self._record = record
        self._done: defaultdict[tuple[str, str], deque[float]] = defaultdict(deque)
        self._last: dict[str, Acted] = {}

    def resume(self, acted: Iterable[Acted]) -> None:
        """Takes what former daemons did within the last day."""
        for one in sorted(acted, key=lambda one: one.at):
            if not one.dry_run and not one.outcome.startswith(NOTHING):
                self._note(one)

    def _note(self, acted: Acted) -> None:
        self._done[acted.alert, acted.about].append(acted.at)
        self._last[acted.about] = acted

    async def act(self, alert: Alert, now: float) -> Acted | None:
        """Does what is said for an alert that begins to fire; returns what came of it, None where nothing is said."""
        act = self._settings.act.get(alert.id)
        if act is None:
            return None
        outcome = await self._do(act, alert, now)
        acted = Acted(now, alert.id, alert.about, act, self._settings.dry_run, alert.why, outcome)
        if not acted.dry_run and not outcome.startswith(NOTHING):
            self._note(acted)
        logger.warning("alert=%s service=%s act=%s outcome=%s why=%s", alert.id, alert.about, act, outcome, alert.why)
        return acted

    async def _do(self, act: ActKind, alert: Alert, now: float) -> str:
        if self._settings.dry_run:
            return f"{NOTHING}, since dry_run is set; else {WORDS[act]}"
        if held := self._say_held(act, alert, now):
            return f"{NOTHING}: {held}"
        why = f"{alert.title}: {alert.why}"
        try:
            await self._audit(act, alert.about, f"begun: {why}", now)
            await self._begin(act, alert.about, why, now)
        except StokerError as problem:
            return f"{NOTHING}: {problem.what}"
        return WORDS[act]

    async def _audit(self, act: ActKind, service: str, outcome: str, now: float) -> None:
        """Records what is about to be done, and why; raises StokerError where that fails: then nothing is done."""
        plan_id = self._supervisor.find(service).plan.plan_id
        await asyncio.to_thread(self._record, Audited(now, WHO, act, service, plan_id, outcome))

    def _say_held(self, act: ActKind, alert: Alert, now: float) -> str:
        """Says why an act is not to be, where it is not."""
        done = self._done[alert.id, alert.about]
        while done and done[0] < now - DAY_S:
            done.popleft()
        if len(done) >= (self._most if act == "restart" else 1):
            return f"that was done {len(done)} times within a day, and it did not help"
        last, limit_s = self._last.get(alert.about), self._settings.act_hold_off_s
        if last is None or not 0 <= now - last.at < limit_s:
            return ""
        ago = f"{(now - last.at) / MINUTE_S:.0f} minutes ago"
        return f"{last.act} was done for {last.alert} {ago}, and has {limit_s:g} s to help (watch.act_hold_off_s)"

    async def _begin(self, act: ActKind, service: str, why: str, now: float) -> None:
        owner = self._supervisor.find(service)
        if act == "stop":
            self._supervisor.stop(service, why)
        elif act == "rollback":
            await self._rollback(service)
        elif act == "speculation off":
            await self._supervisor.start(await self._plan(self._wish_without_drafts(service)), why)
        elif owner.service.state is not State.READY:
            raise Refused(f"{service} is {owner.service.state} just now, and its engine a new one anyway")
        else:
            owner.post(RestartAsked(now, why))
            await owner.await_handled()
            if owner.service.state is State.READY:
                raise Refused(f"{service} was restarted so often that it is left as it is (limits.restarts)")

    def _wish_without_drafts(self, service: str) -> Wish:
        wish = self._menu.wish(service)
        if wish is None:
            raise Refused(f"{service} has no table in stoker.toml, from which it could be planned anew")
        return msgspec.structs.replace(wish, speculation="off", draft=None, **dict.fromkeys(DRAFTING))
