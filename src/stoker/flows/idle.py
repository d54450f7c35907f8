"""Brings the default service back when nothing was asked of any for a while, by the same switch as everybody's."""

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
from stoker.flows.planning import find_wish
from stoker.plan.idle import Quiet, plan_return
from stoker.records import IdleSettings, IdleView, RunningView, ServiceView, State, SwitchView, Wish
from stoker.supervise.hands import Tools
from stoker.supervise.supervisor import Supervisor

LOOK_S = 1.0
Switch = Callable[[Wish], Awaitable[SwitchView]]
logger = logging.getLogger("stoker.daemon")


class Idle:
    """Looks who is asked, and brings the default service back; `run` lives as long as the daemon."""

    def __init__(self, paths: Paths, settings: IdleSettings, supervisor: Supervisor, tools: Tools) -> None:
        self._paths, self._settings, self._supervisor, self._tools = paths, settings, supervisor, tools
        self._quiet_since = time.time()
        self._failed_at: float | None = None

    async def run(self, switch: Switch) -> None:
        """Looks again and again until cancelled."""
        while self._settings.default_service is not None:
            view = self.look()
            if view is not None and view.returns_at is not None and time.time() >= view.returns_at:
                await self._bring_back(view, switch)
            await asyncio.sleep(LOOK_S)

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
        if self._settings.default_service is None:
            return None
        busy, run = self._who_is_asked(), self.read_run()
        now = time.time()
        heard = [now - self._age_s(name) for name in self._supervisor.owners if self._tools.heard_at(name)]
        self._quiet_since = now if busy or run else max(self._quiet_since, *heard, 0.0)
        switch = self._supervisor.switcher.view
        is_switching = switch is not None and switch.outcome is None
        seen = Quiet(self._supervisor.views(), self._quiet_since, busy, run, is_switching, self._failed_at)
        return plan_return(self._settings, seen)

    def read_run(self) -> RunningView | None:
        """Returns the workflow that runs now."""
        return read_run(self._paths)

    def _age_s(self, service: str) -> float:
        return asyncio.get_running_loop().time() - self._tools.heard_at(service)

    def _who_is_asked(self) -> str:
        """Says which service is asked just now, by the gateway's count or, for a command, by its connections."""
        for view in self._supervisor.views():
            if count := self._tools.in_flight(view.name):
                return f"{view.name} is answering {count} requests"
            if _is_asked_directly(view):
                return f"{view.name} has connections at its port"
        return ""


def _is_asked_directly(view: ServiceView) -> bool:
    """Tells whether somebody is connected to a command, or was within the last minute: it is asked without the gateway."""
    if view.answers or view.state is not State.READY or view.address is None:
        return False
    return count_connections(LocalBox(), int(view.address.rpartition(":")[2])) > 0
