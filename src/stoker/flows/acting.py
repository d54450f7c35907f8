"""Does about an alert what `[watch.act]` says, and nothing else: once when it fires, and three times a day at most."""

from __future__ import annotations

import logging
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping

import msgspec

from stoker.errors import Refused, StokerError, WrongUse
from stoker.flows.menu import Menu
from stoker.plan.wishes import DRAFTING
from stoker.records import Plan, State, SwitchView, Wish
from stoker.records.watching import Acted, ActKind, Alert, WatchSettings
from stoker.supervise.machine import RestartAsked
from stoker.supervise.supervisor import Supervisor
from stoker.watch.table import find_alert

DAY_S = 86400.0
NOTHING = "nothing"
WORDS: Mapping[ActKind, str] = {
    "restart": "it is restarted, once its requests have ended and its memory is back",
    "speculation off": "it is started anew without speculation",
    "rollback": "it goes back to the plan by which it was READY before",
    "stop": "it is stopped",
}
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
    """The uses that acts are made of. `most` is how many there may be of one kind about one service in a day."""

    def __init__(
        self, settings: WatchSettings, supervisor: Supervisor, menu: Menu, most: int,
        plan: Callable[[Wish], Awaitable[Plan]], rollback: Callable[[str], Awaitable[SwitchView]],
    ) -> None:  # fmt: skip
        self._settings = settings
        self._supervisor = supervisor
        self._menu = menu
        self._most = most
        self._plan = plan
        self._rollback = rollback
        self._done: defaultdict[tuple[str, str], deque[float]] = defaultdict(deque)

    def resume(self, acted: Iterable[Acted]) -> None:
        """Takes what former daemons did within the last day."""
        for one in sorted(acted, key=lambda one: one.at):
            if not one.dry_run and not one.outcome.startswith(NOTHING):
                self._done[one.alert, one.about].append(one.at)

    async def act(self, alert: Alert, now: float) -> Acted | None:
        """Does what is said for an alert that begins to fire; returns what came of it, None where nothing is said."""
        act = self._settings.act.get(alert.id)
        if act is None:
            return None
        outcome = await self._do(act, alert, now)
        acted = Acted(now, alert.id, alert.about, act, self._settings.dry_run, alert.why, outcome)
        logger.warning("alert=%s service=%s act=%s outcome=%s why=%s", alert.id, alert.about, act, outcome, alert.why)
        return acted

    async def _do(self, act: ActKind, alert: Alert, now: float) -> str:
        if self._settings.dry_run:
            return f"{NOTHING}, since dry_run is set; else {WORDS[act]}"
        done = self._done[alert.id, alert.about]
        while done and done[0] < now - DAY_S:
            done.popleft()
        if len(done) >= self._most:
            return f"{NOTHING}: that was done {len(done)} times within a day, and it did not help"
        try:
            await self._begin(act, alert.about, f"{alert.title}: {alert.why}", now)
        except StokerError as problem:
            return f"{NOTHING}: {problem.what}"
        done.append(now)
        return WORDS[act]

    async def _begin(self, act: ActKind, service: str, why: str, now: float) -> None:
        owner = self._supervisor.find(service)
        if act == "stop":
            self._supervisor.stop(service, why)
        elif act == "rollback":
            await self._rollback(service)
        elif act == "speculation off":
            await self._supervisor.start(await self._plan(self._wish_without_drafts(service)), why)
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
