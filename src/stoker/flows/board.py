"""Puts everything together that the dashboard shows at one moment; nothing of it is made while nobody looks."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from stoker.config import DEMO
from stoker.errors import StokerError
from stoker.flows.cards import DEMO_WHY, card_of, new_card, parts_of, view_verdict
from stoker.flows.exporting import Exporter
from stoker.flows.history import History
from stoker.flows.menu import Menu
from stoker.flows.pace import Paces
from stoker.flows.planning import demo_wish
from stoker.flows.watching import Watching
from stoker.gateway.serving import Serving
from stoker.plan.deeds import Standing, deeds_of
from stoker.records import RESTING, Memory, State, StatusView, SwitchView, Wish
from stoker.records.dashboard import Card, DaemonCard, MachineCard, Shown, VerdictView
from stoker.records.watching import WatchedService
from stoker.store.verifications import read_last_ids, read_verification
from stoker.supervise.room import Room
from stoker.supervise.service import ServiceOwner
from stoker.supervise.supervisor import Supervisor

VERDICT_S = 5.0  # how old may be what is known of verifications, which lie on a disk


# What a resting service's card is made of, but for what only a start changes.
Said = tuple[object, ...]


class Verdict(NamedTuple):
    """What was found out about a service the last time, by its number in the store, and as it is shown by that plan."""

    number: int
    plan_id: str
    view: VerdictView

    def of(self, plan_id: str) -> VerdictView:
        """Returns it as it is shown of a plan."""
        return msgspec.structs.replace(self.view, is_of_this_plan=plan_id == self.plan_id)


class Board:
    """Looks when it is asked to."""

    def __init__(
        self, database: Path, floor_bytes: int, supervisor: Supervisor, menu: Menu, history: History, watching: Watching,
        exporter: Exporter, serving: Serving, paces: Paces,
    ) -> None:  # fmt: skip
        self._database, self._floor_bytes = database, floor_bytes
        self._supervisor, self._menu, self._history, self._watching = supervisor, menu, history, watching
        self._exporter, self._serving, self._paces = exporter, serving, paces
        self._verdicts: Mapping[str, Verdict] = {}
        self._verdicts_at = float("-inf")
        self._resting: dict[str, tuple[Said, Card]] = {}  # of 500 services nearly all rest, and their cards stay as they are

    async def look(self, status: StatusView) -> Shown:
        """Returns everything that is shown now; `status` is what the daemon says of itself and its services."""
        await self._exporter.look()
        await self._look_at_verdicts()
        owners, watched = self._supervisor.owners, self._watching.view()
        by_name = {one.name: one for one in watched.services}
        engines = {one.service: one for one in self._exporter.engines}
        self._paces.forget_all_but(owners)
        for gone in self._resting.keys() - owners.keys():
            del self._resting[gone]
        for name, owner in owners.items():
            self._paces.take(name, owner.service.launch, engines.get(name), self._serving.in_flight(name))
        switch = self._supervisor.switcher.view
        room = self._supervisor.room(by_last_look=True)  # one look for all: with 500 services each would take a core
        known = (self._card(owners[name], room, by_name.get(name), switch) for name in sorted(owners))
        cards = (*known, *self._new(switch))
        return Shown(_daemon(status), self._machine(cards), cards, watched.alerts, watched.lost, switch)

    async def _look_at_verdicts(self) -> None:
        now = time.monotonic()
        if now - self._verdicts_at >= VERDICT_S:
            self._verdicts_at = now
            plans = {name: owner.plan.plan_id for name, owner in self._supervisor.owners.items()}
            self._verdicts = await asyncio.to_thread(_read_verdicts, self._database, plans, self._verdicts)

    def _card(self, owner: ServiceOwner, room: Room, watched: WatchedService | None, switch: SwitchView | None) -> Card:
        name, (goes, no_room) = owner.plan.service, _room_for(owner, room)
        verdict = self._verdicts.get(name)
        said = (owner.service, owner.plan, goes, no_room, _switching(switch), verdict, self._serving.waiting(name))
        before, card = self._resting.get(name, (None, None))
        if card is not None and said == before:
            return card  # nothing happened to it since the last look
        card = self._make_card(owner, goes, no_room, watched, switch)
        if owner.is_busy or self._serving.in_flight(name):
            self._resting.pop(name, None)
        else:
            self._resting[name] = said, card
        return card

    def _make_card(
        self, owner: ServiceOwner, goes: tuple[str, ...] | None, no_room: str, watched: WatchedService | None,
        switch: SwitchView | None,
    ) -> Card:  # fmt: skip
        name, view = owner.plan.service, owner.view()
        former = [plan for plan in owner.good if plan.plan_id != owner.plan.plan_id]
        standing = Standing(view.state, owner.is_busy, goes, no_room, _switching(switch), bool(former), owner.is_foreign)
        holding = owner.holding(by_last_look=True)
        pace = self._paces.pace(name, self._serving.waiting(name), self._serving.in_flight(name), watched)
        verdict = self._verdicts.get(name)
        return card_of(
            view, deeds_of(standing), pace, revision=owner.plan.revision, expected_s=self._history.expected_s(name),
            need_bytes=owner.need_for(owner.plan), held_bytes=holding.held_bytes, coming_bytes=holding.coming_bytes,
            goes=goes or (), has_room=None if goes is None and not no_room else not goes and not no_room,
            verdict=verdict.of(view.plan_id) if verdict else None,
        )  # fmt: skip

    def _new(self, switch: SwitchView | None) -> Iterator[Card]:
        """Yields what could be started and never was; the demo too, as long as there is nothing else."""
        owners, services = self._supervisor.owners, self._menu.config.services
        for name, wish in services.items():
            if name not in owners:
                goes = tuple(one for one, owner in owners.items() if _shares_group(wish, owner))
                yield new_card(wish, 0.0, _switching(switch), self._history.expected_s(name), goes=goes)
        if not services and not owners:
            yield new_card(demo_wish(), 0.0, _switching(switch), self._history.expected_s(DEMO), DEMO_WHY)

    def _machine(self, cards: tuple[Card, ...]) -> MachineCard:
        seen = self._exporter.machine
        memory: Memory | None = seen.memory
        gpu = seen.gpus[0] if seen.gpus else None
        card = MachineCard(
            floor_bytes=self._floor_bytes, power_w=gpu.power_w if gpu else None,
            temperature_c=gpu.temperature_c if gpu else None, clock_mhz=gpu.sm_clock_mhz if gpu else None,
        )  # fmt: skip
        if memory is None:
            return card
        return msgspec.structs.replace(
            card, total_bytes=memory.total_bytes, available_bytes=memory.available_bytes,
            parts=parts_of(memory, cards), stalled_pct=memory.full_stall_pct,
        )  # fmt: skip


def _room_for(owner: ServiceOwner, room: Room) -> tuple[tuple[str, ...] | None, str]:
    """Returns who would have to stop for a service that rests, and why nobody could make room for it."""
    if owner.service.state not in RESTING | {State.BACKOFF, State.WAITING_FOR_MEMORY}:
        return None, ""
    try:
        return room.who_goes(owner.plan), ""
    except StokerError as problem:
        return None, problem.what


def _shares_group(wish: Wish, owner: ServiceOwner) -> bool:
    return wish.group is not None and wish.group == owner.plan.group and owner.is_busy


def _switching(switch: SwitchView | None) -> str:
    return switch.service if switch is not None and switch.outcome is None else ""


def _daemon(status: StatusView) -> DaemonCard:
    daemon = status.daemon
    return DaemonCard(
        daemon.version or "", daemon.since or 0.0, status.gateway.url, daemon.memory_bytes or 0, status.idle, status.run,
        status.doors,
    )  # fmt: skip


def _read_verdicts(database: Path, plans: Mapping[str, str], before: Mapping[str, Verdict]) -> dict[str, Verdict]:
    """Returns the last verdict of each service; what is known by its number is not read again. What is lost is left out."""
    found = {}
    with contextlib.suppress(StokerError):
        for name, number in read_last_ids(database).items():
            known = before.get(name)
            last = known if known is not None and known.number == number else _read_verdict(database, number)
            if last is not None and name in plans:
                found[name] = last
    return found


def _read_verdict(database: Path, number: int) -> Verdict | None:
    try:
        kept = read_verification(database, number)
    except StokerError:
        return None
    return None if kept is None else Verdict(number, kept.plan_id, view_verdict(kept, kept.plan_id))
