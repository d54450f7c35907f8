"""The daemon's uses for heads on other boxes: what this box has for a part, and to start, keep and stop its rank."""

from __future__ import annotations

import asyncio
import time

from stoker.config import Paths
from stoker.errors import Refused
from stoker.flows.ranks.calls import LinkedCrew
from stoker.flows.ranks.part import plan_part, read_facts
from stoker.records import BEING_STARTED, RESTING, WITHOUT_ENGINE, Service, ServiceView, State
from stoker.records.rank_views import RankFacts, RankRenew, RankStart, RankView
from stoker.records.ranks import Seat
from stoker.supervise.machine import Exited
from stoker.supervise.runtimes.ranked import LEASE_S
from stoker.supervise.service import LEAVING, ServiceOwner
from stoker.supervise.supervisor import Supervisor

LOOK_S = 1.0
STOP_S, MAKE_WAY_S = 5.0, 120.0


class RankDesk:
    """Starts no rank but by this box's own stoker.toml, and ends those whose heads are not heard any more.

    `head` is the name of the link over which a head asks; a rank is none of any other's business.
    """

    def __init__(self, paths: Paths, own_name: str, supervisor: Supervisor, crew: LinkedCrew) -> None:
        self._paths, self._own_name = paths, own_name
        self._supervisor, self._crew = supervisor, crew
        self._heard_s: dict[str, float] = {}

    async def check(self, service: str) -> RankFacts:
        """Returns what this box has for its part of a service."""
        return await asyncio.to_thread(read_facts, service, self._paths.config)

    async def start(self, start: RankStart, head: str) -> RankView:
        """Plans this box's rank and asks for it to run, after the end of a former one."""
        name = start.ask.service
        plan = await asyncio.to_thread(plan_part, start.ask, head, start.launch, self._paths.config)
        owner = self._supervisor.owners.get(name)
        if owner is not None and owner.is_busy:
            self._check_is_for(owner, head)
            await self._end(owner, "its head starts it anew", MAKE_WAY_S)
        self._crew.whole.pop(name, None)
        self._heard_s[name] = time.monotonic()
        owner = await self._supervisor.start(plan, f"it is rank {start.ask.rank} of {name}, whose head is on {head}")
        return self._view(owner)

    async def renew(self, service: str, renew: RankRenew, head: str) -> RankView:
        """Notes that the head still wants a rank; returns it once its state is another than the one seen."""
        owner = self._find(service, head)
        if self._seat(owner).launch == renew.launch:
            self._heard_s[service] = time.monotonic()
            if renew.is_whole:
                self._crew.whole[service].set()
            if owner.service.state is renew.seen:
                await owner.await_change(renew.limit_s)
        await self._supervisor.look_at_memory()
        return self._view(owner)

    async def stop(self, service: str, head: str) -> RankView:
        """Asks for a rank to end, and waits some seconds for it."""
        owner = self._find(service, head)
        await self._end(owner, f"its head on {head} stops it", STOP_S)
        return self._view(owner)

    async def run(self) -> None:
        """Ends the ranks whose heads were not heard for too long; lives as long as the daemon."""
        while True:
            now_s = time.monotonic()
            for name, owner in list(self._supervisor.owners.items()):
                if owner.plan.seat is not None and owner.is_busy:
                    if now_s - self._heard_s.setdefault(name, now_s) > LEASE_S:
                        self._give_up(owner)
                else:
                    self._heard_s.pop(name, None)
            await asyncio.sleep(LOOK_S)

    def _give_up(self, owner: ServiceOwner) -> None:
        service = owner.service
        why = f"its head on {self._seat(owner).head} was not heard for {LEASE_S:g} s"
        if service.state in WITHOUT_ENGINE:
            owner.ask_stop(why)
        elif service.state not in (State.STOPPING, State.SETTLING):
            owner.post(Exited(time.time(), why, launch=service.launch))

    async def _end(self, owner: ServiceOwner, why: str, limit_s: float) -> None:
        owner.ask_stop(why)
        await owner.await_handled()
        end_s = time.monotonic() + limit_s
        while owner.service.state not in RESTING and (left_s := end_s - time.monotonic()) > 0:
            await owner.await_change(left_s)

    def _find(self, service: str, head: str) -> ServiceOwner:
        owner = self._supervisor.owners.get(service)
        if owner is None or owner.plan.seat is None:
            raise Refused(f"{self._own_name} runs no rank of {service}")
        self._check_is_for(owner, head)
        return owner

    def _check_is_for(self, owner: ServiceOwner, head: str) -> None:
        seat, name = owner.plan.seat, owner.plan.service
        if seat is None or seat.head != head:
            whose = "its own" if seat is None else f"{seat.head}'s"
            raise Refused(
                f"{name} is {owner.service.state} on {self._own_name}, and {whose}",
                next_step=f"`stoker down {name}` {'there' if seat is None else f'on {seat.head}'} ends it",
            )

    def _seat(self, owner: ServiceOwner) -> Seat:
        if owner.plan.seat is None:
            raise Refused(f"{owner.plan.service} is no rank of another box's")
        return owner.plan.seat

    def _view(self, owner: ServiceOwner) -> RankView:
        seat, view = self._seat(owner), owner.view()
        return RankView(
            seat.rank, self._own_name, view.state, _say_why(owner.service, view), seat.launch, view.memory_bytes,
            view.transport, is_unwanted=not owner.service.wanted,
        )  # fmt: skip


def _say_why(service: Service, view: ServiceView) -> str:
    """What one that comes waits for, and why one that goes does so."""
    if service.state in BEING_STARTED:
        return view.awaits or view.why
    return service.then_why if service.state in LEAVING and service.then_why else view.why
