"""Who has to stop for a service: memory and what engines hold are read once, for however many services that is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

from stoker.errors import Refused
from stoker.plan.room import Claim, OnCard, to_stop
from stoker.records import CardMemory, Memory, Plan, State, say_bytes
from stoker.supervise.card import say_card_holders
from stoker.supervise.hands import Holding
from stoker.supervise.service import ServiceOwner
from stoker.supervise.switching import is_beside


class Found(NamedTuple):
    """Who goes in any case, what is free then of the machine's memory and of the card's (None: unknown), and who stays."""

    group: tuple[str, ...]
    free_bytes: int
    card_free_bytes: int | None
    claims: list[Claim]


class Room:
    """The busy services with what they hold, and the memory. `by_last_look`: as they were last looked at, to be shown.

    `read_card` is asked where a plan needs memory of a card of its own.
    """

    def __init__(
        self, owners: Mapping[str, ServiceOwner], memory: Memory, floor_bytes: int,
        read_card: Callable[[], CardMemory | None], *, by_last_look: bool = False,
    ) -> None:  # fmt: skip
        self._owners, self._memory, self._floor_bytes = owners, memory, floor_bytes
        self._read_card = read_card
        self._busy = {name: owner for name, owner in owners.items() if owner.is_busy}
        self._held = {name: owner.holding(by_last_look=by_last_look) for name, owner in self._busy.items()}

    def who_goes(self, plan: Plan) -> tuple[str, ...]:
        """Returns the services that have to stop for a plan; raises Refused where not even that makes room."""
        own = self._owners.get(plan.service)
        need_bytes = (own.need_for(plan) if own else plan.host_need_bytes) + self._floor_bytes
        # What rests and has no group finds the same room as all others that do: of 500 services nearly all.
        is_plain = plan.group is None and plan.service not in self._busy and not plan.card_need_bytes
        found = self._for_others if is_plain else self._for(plan)
        card = None
        if plan.card_need_bytes and found.card_free_bytes is not None:
            card = OnCard(plan.card_need_bytes, found.card_free_bytes)
        more = to_stop(need_bytes, found.free_bytes, found.claims, card)
        if more is None:
            raise self._refusal(plan, need_bytes, found)
        return (*found.group, *more)

    @cached_property
    def _card(self) -> CardMemory | None:
        return self._read_card()

    @cached_property
    def _for_others(self) -> Found:
        return self._for(None)

    def _for(self, plan: Plan | None) -> Found:
        """Returns what a plan finds; without one for whatever is not here yet, and asks nothing of a card."""
        own = plan.service if plan is not None else ""
        others = {name: owner for name, owner in self._busy.items() if name != own}
        group = tuple(name for name, owner in others.items() if plan is not None and shares_group(plan, owner))
        leaving = [name for name, owner in others.items() if name not in group and owner.is_leaving]
        goes = (*group, *leaving, *([own] if own in self._busy else []))
        stays = [
            name for name, owner in others.items() if name not in goes and owner.service.state is not State.WEDGED
        ]  # fmt: skip
        card = self._card if plan is not None and plan.card_need_bytes else None
        on_card = {name: self._busy[name].holding_on_card(card.free_bytes) for name in (*goes, *stays)} if card else {}
        claims = [Claim(name, sum(self._held[name]), sum(on_card.get(name, ()))) for name in stays]
        free_bytes = _free_bytes(self._memory.total_bytes, self._memory.available_bytes, self._held, goes, stays)
        card_free_bytes = _free_bytes(card.total_bytes, card.free_bytes, on_card, goes, stays) if card else None
        return Found(group, free_bytes, card_free_bytes, claims)

    def _refusal(self, plan: Plan, need_bytes: int, found: Found) -> Refused:
        next_step = "end other programs, or plan for less: a smaller model, context or number of requests"
        if self._card_is_short(plan, found) and (card := self._card) is not None:
            return Refused(
                f"{plan.service} needs {say_bytes(plan.card_need_bytes)} of the card's memory ({card.name}),"
                " and there would not be as much if all services stopped",
                why=f"{say_bytes(card.free_bytes)} of {say_bytes(card.total_bytes)} are free there now;"
                f" most is held by: {say_card_holders(card)}",
                next_step=next_step,
            )
        return Refused(
            f"{plan.service} needs {say_bytes(need_bytes)} with what is kept for the system,"
            " and there would not be as much if all services stopped",
            why=f"{say_bytes(self._memory.available_bytes)} of {say_bytes(self._memory.total_bytes)} are available now",
            next_step=next_step,
        )

    def _card_is_short(self, plan: Plan, found: Found) -> bool:
        if found.card_free_bytes is None:
            return False
        return found.card_free_bytes + sum(claim.card_bytes for claim in found.claims) < plan.card_need_bytes


def _free_bytes(
    total_bytes: int, available_bytes: int, held: Mapping[str, Holding], goes: Iterable[str], stays: Iterable[str]
) -> int:
    back_bytes = sum(held[name].held_bytes for name in goes)
    coming_bytes = sum(held[name].coming_bytes for name in stays)
    return min(total_bytes, available_bytes + back_bytes - coming_bytes)


def shares_group(plan: Plan, owner: ServiceOwner) -> bool:
    """Tells whether an owner's service, by any plan it has or is about to have, is of a plan's group."""
    return any(is_beside(plan, other) for other in owner.plans)
