"""Stops a service when nothing was asked of it for its `idle_s`, and brings the default service back after a while.

The way back is the same switch as everybody's; where both are due, it comes first and decides who has to stop.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from stoker.box import LocalBox
from stoker.config import Paths, read_config
from stoker.errors import StokerError
from stoker.facts.machine.ports import count_connections
from stoker.flows.lease import read_run
from stoker.flows.menu import Menu
from stoker.flows.planning import find_wish
from stoker.plan.idle import Quiet, plan_return, plan_stops
from stoker.records import IdleSettings, IdleView, RunningView, ServiceView, State, SwitchView, Wish
from stoker.supervise.hands import Tools
from stoker.supervise.supervisor import Supervisor

LOOK_S = 1.0
Switch = Callable[[Wish], Awaitable[SwitchView]]
logger = logging.getLogger("stoker.daemon")


class Idle:
    """Looks who is asked; `run` lives as long as the daemon."""

    def __init__(self, paths: Paths, settings: IdleSettings, supervisor: Supervisor, tools: Tools, menu: Menu) -> None:
        self._paths, self._settings, self._supervisor, self._tools = paths, settings, supervisor, tools
        self._menu = menu
        self._asked_at: dict[str, float] = {}
        self._failed_at: float | None = None

    async def run(self, switch: Switch) -> None:
        """Looks again and again until cancelled."""
        while True:
            view = self.look() if self._settings.default_service is not None else None
            if view is not None and view.returns_at is not None and time.time() >= view.returns_at:
                await self._bring_back(view, switch)
            elif self._menu.idle_limits_s():
                self._stop_idle()
            await asyncio.sleep(LOOK_S)

    def _stop_idle(self) -> None:
        for name, why in plan_stops(self._see(), time.time()).items():
            if not self._supervisor.find(name).is_foreign:
                logger.info("service=%s stops: %s", name, why)
                self._supervisor.stop(name, why)

    async def _bring_back(self, view: IdleView, switch: Switch) -> None:
        logger.info("service=%s comes back: %s", view.default_service, view.why)
        try:
            # Read anew: its table counts as it is now, as with `stoker up`.
            wish = find_wish(view.default_service, await asyncio.to_thread(read_config, self._paths.config))
            await switch(wish)
            ended = await self._await_end()
        except StokerError as problem:
            self._failed_at = time.time()
            logger.warning("service=%s did not come back: %s", view.default_service, problem.what)
        except Exception:  # a fault here must not end the daemon, and with it all services
            self._failed_at = time.time()
            logger.exception("service=%s did not come back", view.default_service)
        else:
            self._failed_at = None if ended.outcome == "ready" else ended.ended

    async def _await_end(self) -> SwitchView:
        while True:
            view = await self._supervisor.switcher.await_change(0, 0, LOOK_S)
            if view is not None and view.outcome is not None:
                return view
            await asyncio.sleep(LOOK_S)

    def look(self) -> IdleView | None:
        """Returns when and why the default service comes back, or why not; None where none is set."""
        return plan_return(self._settings, self._see()) if self._settings.default_service is not None else None

    def _see(self) -> Quiet:
        views, now, run = self._supervisor.views(), time.time(), self.read_run()
        asked = {view.name: said for view in views if (said := self._how_asked(view))}
        for view in views:  # what a workflow runs for counts as asked
            self._asked_at[view.name] = now if run or view.name in asked else self._last_asked(view.name, now)
        quiet_since = max((self._asked_at[view.name] for view in views if view.state is State.READY), default=0.0)
        switch = self._supervisor.switcher.view
        is_switching = switch is not None and switch.outcome is None
        busy = next(iter(asked.values()), "")
        return Quiet(
            views, quiet_since, busy, run, is_switching, self._failed_at, self._asked_at, self._menu.idle_limits_s()
        )

    def read_run(self) -> RunningView | None:
        """Returns the workflow that runs now."""
        return read_run(self._paths)

    def _last_asked(self, service: str, now: float) -> float:
        """Returns when a service was last asked: what its engine said counts, and what was seen of it before."""
        heard = self._tools.heard_at(service)
        heard_at = now - (asyncio.get_running_loop().time() - heard) if heard else 0.0
        return max(self._asked_at.get(service, 0.0), heard_at)

    def _how_asked(self, view: ServiceView) -> str:
        """Says how a service is asked just now, by the gateway's count or, for a command, by its connections."""
        if count := self._tools.in_flight(view.name):
            return f"{view.name} is answering {count} requests"
        return f"{view.name} has connections at its port" if is_asked_directly(view) else ""


def is_asked_directly(view: ServiceView) -> bool:
    """Tells whether somebody is connected to a command, or was within the last minute: it is asked without the gateway."""
    if view.answers or view.state is not State.READY or view.address is None:
        return False
    return count_connections(LocalBox(), int(view.address.rpartition(":")[2])) > 0
