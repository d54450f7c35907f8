"""What the control API may do: the daemon's uses, by name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
import psutil

from stoker import __version__
from stoker.box import clock_s
from stoker.config import DEMO, Paths
from stoker.errors import Refused, StokerError, WrongUse
from stoker.flows.adopting import read_adoption
from stoker.flows.agents import Agents
from stoker.flows.board import Board
from stoker.flows.boxes.desk import BoxDesk
from stoker.flows.fix_trying import FixTrials
from stoker.flows.history import History
from stoker.flows.idle import Idle
from stoker.flows.key_desk import KeyDesk
from stoker.flows.looking import Looking
from stoker.flows.menu import Menu
from stoker.flows.planning import find_wish, make_plan
from stoker.flows.proving import Proving, view_matrix
from stoker.flows.ranks.desk import RankDesk
from stoker.flows.ranks.head import plan_head
from stoker.flows.verify import choose_probes
from stoker.flows.watching import Watching
from stoker.plan.idle import ON_PURPOSE
from stoker.records import (
    AdoptView,
    AdoptWish,
    DaemonView,
    GatewayView,
    KeptVerification,
    Plan,
    ServiceView,
    State,
    StatusView,
    SwitchView,
    Wish,
)
from stoker.records.dashboard import Shown
from stoker.records.looking import MatrixView, PlansView, ProveWish, ProvingView
from stoker.store.services import ServiceStore
from stoker.store.verifications import VerificationStore, read_passed, read_verifications
from stoker.supervise.logs import PROBES_END, mark_probes
from stoker.supervise.service import ServiceOwner
from stoker.supervise.supervisor import Supervisor

UNLOADED = "it was unloaded"  # not for good: a request may start it again


class Control:
    """The daemon's uses. `stop_asked` is set when the daemon is to end."""

    def __init__(
        self, paths: Paths, store: ServiceStore, history: History, verifications: VerificationStore,
        supervisor: Supervisor, menu: Menu, idle: Idle, keys: KeyDesk, watching: Callable[[], Watching],
        board: Callable[[], Board], boxes: BoxDesk, ranks: RankDesk,
    ) -> None:  # fmt: skip
        self._watching, self._board = watching, board
        self._paths = paths
        self._store = store
        self._history = history
        self._verifications = verifications
        self._supervisor = supervisor
        self._menu = menu
        self._idle = idle
        self.keys = keys
        self.boxes = boxes
        self.ranks = ranks
        self.agents = Agents(paths)
        self.proving = Proving(paths, self._keep_verification)
        self.fixes = FixTrials(paths, supervisor, self.switch)
        self.looking = Looking(paths, lambda name: supervisor.find(name).plan)
        self._begun = clock_s()
        self.url = ""
        self.stop_asked = asyncio.Event()

    async def look(self) -> StatusView:
        """Returns everything that `stoker status` shows, with what the engines hold now."""
        await self._supervisor.look_at_memory()
        return self.status()

    def status(self) -> StatusView:
        """Returns everything that `stoker status` shows, with what the engines held when they were last looked at."""
        return self._status(self._supervisor.views())

    def _status(self, services: tuple[ServiceView, ...]) -> StatusView:
        me = psutil.Process()
        return StatusView(
            gateway=GatewayView(f"{self.url}/v1", str(self._paths.key_file)),
            daemon=DaemonView(True, me.pid, self._begun, __version__, me.memory_info().rss),
            services=services,
            idle=self._idle.look(),
            run=self._idle.read_run(),
            doors=self._menu.views(),
            config_fault=self._menu.fault,
        )

    async def show(self) -> Shown:
        """Returns what the dashboard shows."""
        shown = await self._board().look(self._status(()))
        return msgspec.structs.replace(shown, fix=self.fixes.last, boxes=self.boxes.view().boxes)

    async def plan(self, wish: Wish) -> Plan:
        """Returns the plan of a wish; raises Refused where it cannot work, or its model's name is taken."""
        # It reads headers and asks programs for their versions; of a model over several boxes it asks those.
        plan = await asyncio.to_thread(self._make_plan, wish)
        self._check_names(plan.service, plan.model)
        return plan

    def _make_plan(self, wish: Wish) -> Plan:
        return plan_head(wish, self._paths, self.boxes.own_name) if wish.boxes else make_plan(wish)

    async def up(self, wish: Wish, *, is_trial: bool = False) -> ServiceView:
        """Plans a wish and asks for it to run; the state returned is the first that follows.

        A trial is no plan to go back to until it is asked for in earnest.
        """
        plan = await self.plan(wish)
        why = "it is tried out" if is_trial else "you asked for it"
        owner = await self._supervisor.start(plan, why, is_trial=is_trial)
        return owner.view()

    async def start(self, name: str) -> ServiceView:
        """Asks for a service to run that is known by name, as `stoker up NAME` does."""
        owner = await self._supervisor.start(await self._plan_named(name), "you asked for it")
        return owner.view()

    async def switch_to(self, name: str) -> SwitchView:
        """Begins to put a service that is known by name in the place of those that leave it no room."""
        return await self._supervisor.switch(await self._plan_named(name))

    async def restart(self, name: str) -> ServiceView:
        """Asks for a service to stop and start again by the plan it has; raises Refused where it is not READY.

        So that of two who ask at once the second one is told, and stops nothing that the first one starts.
        """
        owner = self._supervisor.find(name)
        self._supervisor.switcher.check_start(owner.plan)
        if owner.service.state is not State.READY:
            raise Refused(f"{name} is {owner.service.state}", next_step="wait until it is READY, or start it")
        if owner.is_foreign:
            raise Refused(
                f"{name} was adopted as it ran", why="nobody could start it again", next_step="`stoker adopt --restart`"
            )
        owner.ask_stop("a restart was asked for")
        owner.ask_start(owner.plan, "a restart was asked for")
        await owner.await_handled()
        return owner.view()

    async def _plan_named(self, name: str) -> Plan:
        """Returns the plan of a service by its table as it is now; one that has none is started as it was the last time."""
        await self._menu.refresh()  # which it does by itself once a second
        config, owners = self._menu.config, self._supervisor.owners
        if name in config.services or (name == DEMO and name not in owners):
            return await self.plan(find_wish(name, config))
        return self._supervisor.find(name).plan

    async def adopt(self, wish: AdoptWish) -> AdoptView:
        """Takes a running engine over; it has to prove itself like any other."""
        adoption = await asyncio.to_thread(read_adoption, wish)
        plan = adoption.plan
        self._check_is_new(plan.adopted.pid if plan.adopted else wish.pid, plan.service)
        self._check_names(plan.service, plan.model)
        owner = await self._supervisor.start(plan, f"you adopted {wish.container or f'pid {wish.pid}'}")
        return AdoptView(owner.view(), adoption.findings, adoption.notes)

    def _check_is_new(self, pid: int, service: str) -> None:
        for name, owner in self._supervisor.owners.items():
            if owner.holds(pid):
                raise Refused(f"pid {pid} is watched already, as {name}", next_step="`stoker status` shows it")
            if name == service and owner.service.state not in (State.STOPPED, State.FAILED):
                raise Refused(
                    f"there is a service called `{name}` already, and it is {owner.service.state}",
                    next_step=f"give another --name, or stop it first: `stoker down {name}`",
                )

    def _check_names(self, service: str, model: str) -> None:
        for name, owner in self._supervisor.owners.items():
            if name != service and owner.plan.model == model:
                raise Refused(
                    f"the model name `{model}` is taken by the service `{name}`",
                    why="a request names a model, and one name must mean one model",
                    next_step=f"give one of them another `served_name`, or `stoker down {name} --forget`",
                )

    async def switch(self, wish: Wish) -> SwitchView:
        """Plans a wish and begins to put it in the place of those that leave it no room."""
        return await self._supervisor.switch(await self.plan(wish))

    async def keep_default(self) -> None:
        """Stops what is not asked, and brings the default service back; lives as long as the daemon."""
        await self._idle.run(self.switch)

    async def rollback(self, name: str) -> SwitchView:
        """Begins to bring a service back to the plan by which it was READY before this one.

        Of several the last that passed its gate: one from before there was a gate, or without one, comes after those.
        """
        former = self._former(self._supervisor.find(name, "stoker rollback"))
        if former is None:
            raise Refused(
                f"{name} was never READY by another plan than this one", next_step=f"`stoker plan {name}` shows it"
            )
        return await self._supervisor.switch(former)

    def _former(self, owner: ServiceOwner) -> Plan | None:
        plans = [plan for plan in owner.good if plan.plan_id != owner.plan.plan_id]
        passed = read_passed(self._paths.database, owner.plan.service)
        return next((plan for plan in reversed(plans) if plan.plan_id in passed), plans[-1] if plans else None)

    async def plans(self, name: str) -> PlansView:
        """Returns a service's plan beside the one that a start would have now, and the one that `rollback` leads to."""
        from stoker.flows.plans import view_plans

        owner, config = self._supervisor.find(name), self._menu.config
        found: Plan | StokerError | None = None
        if name in config.services or name == DEMO:
            try:
                found = await self.plan(find_wish(name, config))
            except StokerError as problem:
                found = problem
        return await view_plans(owner.plan, config, found, self._former(owner))

    async def matrix(self) -> MatrixView:
        """Returns what every probe found the last time that it was asked of every service."""
        return await asyncio.to_thread(view_matrix, self._paths, self._supervisor.views(), self.proving.view)

    async def prove(self, name: str, wish: ProveWish) -> ProvingView:
        """Begins to verify a service, as `stoker verify` does."""
        probes = await asyncio.to_thread(choose_probes, (), (), wish.deep)  # it imports their files
        return self.proving.begin(self._supervisor.find(name).view(), wish, probes)

    async def await_switch(self, seen: int, since: float, limit_s: float) -> SwitchView:
        """Returns the switch begun then (0: the last) once it has more steps than were seen; raises WrongUse without one."""
        view = await self._supervisor.switcher.await_change(seen, since, limit_s)
        if view is None:
            raise WrongUse("there was no switch since the daemon began", next_step="`stoker switch SERVICE` makes one")
        return view

    @property
    def watching(self) -> Watching:
        """The watch over services and machine."""
        return self._watching()

    def stop(self) -> None:
        """Ends the daemon; no switch goes on with the next one."""
        self._supervisor.switcher.give_up()
        self.stop_asked.set()

    async def down(self, name: str) -> ServiceView:
        """Asks for a service to stop; the state returned is the first that follows."""
        return await self._stop(name, ON_PURPOSE)

    async def _stop(self, name: str, why: str) -> ServiceView:
        owner = self._supervisor.stop(name, why)
        await owner.await_handled()
        return owner.view()

    async def unload(self, model: str | None) -> list[ServiceView]:
        """Asks the services of a model to stop, or all; returns each in the first state that follows."""
        named = [name for name, owner in self._supervisor.owners.items() if model in (None, owner.plan.model, name)]
        if model is not None and not named:
            raise WrongUse(f"there is no model `{model}`", next_step="`stoker status` lists the services")
        return [await self._stop(name, UNLOADED) for name in named]

    async def forget(self, name: str) -> None:
        """Forgets a service that rests."""
        await self._supervisor.forget(name)
        self._store.delete(name)
        self._history.forget(name)
        self._verifications.forget(name)

    def verifications(self, name: str, most: int) -> list[KeptVerification]:
        """Returns what was found out about a service the last times, the last first."""
        return read_verifications(self._paths.database, self._supervisor.find(name).plan.service, most)

    def keep_verification(self, name: str, kept: KeptVerification) -> KeptVerification:
        """Keeps what a person found out about a service, a linked box's as NAME@BOX.

        Raises WrongUse for another's, or what its gate alone may say.
        """
        service, _, box = name.partition("@")
        if box:
            self.boxes.find(box, service)
        else:
            self._supervisor.find(name)
        if kept.service != name or (kept.verification.box or "") != box or kept.occasion != "verify":
            raise WrongUse(
                f"this is no verification of {name} that a person asked for",
                why=f"it is of {kept.service}, for {kept.occasion}",
            )
        self._keep_verification(kept)
        return kept

    def _keep_verification(self, kept: KeptVerification) -> None:
        """Keeps it, and says in the log of an engine of this box that it outlived what it was asked."""
        owner = self._supervisor.owners.get(kept.service)
        if owner is not None and owner.service.state is State.READY:
            mark_probes(self._paths.engine_log(kept.service), PROBES_END)
        self._verifications.write(kept)

    async def wait(self, name: str, seen: State, limit_s: float) -> ServiceView:
        """Returns the service once it is in another state than the one seen, or as it is when the limit is over."""
        owner = self._supervisor.find(name)
        if owner.service.state is seen:
            await owner.await_change(limit_s)
        await self._supervisor.look_at_memory()
        return owner.view()

    def tail(self, name: str, count: int) -> list[str]:
        """Returns the last lines that a service's engine printed."""
        return self._supervisor.find(name, "stoker logs").tail(count)
