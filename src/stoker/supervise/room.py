"""Who has to stop for a service: memory and what engines hold are read once, for however many services that is asked."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from stoker.errors import Refused
from stoker.plan.room import Claim, to_stop
from stoker.records import Memory, Plan, State, say_bytes
from stoker.supervise.hands import Holding
from stoker.supervise.service import ServiceOwner
from stoker.supervise.switching import is_beside


class Room:
    """The busy services with what they hold, and the memory. `by_last_look`: as they were last looked at, to be shown."""

    def __init__(
        self, owners: Mapping[str, ServiceOwner], memory: Memory, floor_bytes: int, *, by_last_look: bool = False
    ) -> None:
        self._owners, self._memory, self._floor_bytes = owners, memory, floor_bytes
        self._busy = {name: owner for name, owner in owners.items() if owner.is_busy}
        self._held = {name: owner.holding(by_last_look=by_last_look) for name, owner in self._busy.items()}

    def who_goes(self, plan: Plan) -> tuple[str, ...]:
        """Returns the services that have to stop for a plan; raises Refused where not even that makes room."""
        own = self._owners.get(plan.service)
        need_bytes = (own.need_for(plan) if own else plan.memory_need_bytes) + self._floor_bytes
        # What rests and has no group finds the same room as all others that do: of 500 services nearly all.
        is_plain = plan.group is None and plan.service not in self._busy
        group, free_bytes, claims = self._for_others if is_plain else self._for(plan)
        more = to_stop(need_bytes, free_bytes, claims)
        if more is None:
            raise self._refusal(plan, need_bytes)
        return (*group, *more)

    @cached_property
    def _for_others(self) -> tuple[tuple[str, ...], int, list[Claim]]:
        return self._for(None)

    def _for(self, plan: Plan | None) -> tuple[tuple[str, ...], int, list[Claim]]:
        """Returns who goes in any case, what is free then, and who stays; without a plan for whatever is not here yet."""
        own = plan.service if plan is not None else ""
        others = {name: owner for name, owner in self._busy.items() if name != own}
        group = tuple(name for name, owner in others.items() if plan is not None and shares_group(plan, owner))
        leaving = [name for name, owner in others.items() if name not in group and owner.is_leaving]
        goes = (*group, *leaving, *([own] if own in self._busy else []))
        stays = {
            name: self._held[name] for name, owner in others.items()
            if name not in goes and owner.service.state is not State.WEDGED
        }  # fmt: skip
        return group, self._free_bytes(goes, stays), [Claim(name, sum(one)) for name, one in stays.items()]

    def _free_bytes(self, goes: tuple[str, ...], stays: Mapping[str, Holding]) -> int:
        back_bytes = sum(self._held[name].held_bytes for name in goes)
        coming_bytes = sum(one.coming_bytes for one in stays.values())
        return min(self._memory.total_bytes, self._memory.available_bytes + back_bytes - coming_bytes)

    def _refusal(self, plan: Plan, need_bytes: int) -> Refused:
        return Refused(
            f"{plan.service} needs {say_bytes(need_bytes)} with what is kept for the system,"
            " and there would not be as much if all services stopped",
            why=f"{say_bytes(self._memory.available_bytes)} of {say_bytes(self._memory.total_bytes)} are available now",
            next_step="end other programs, or plan for less: a smaller model, context or number of requests",
        )


def shares_group(plan: Plan, owner: ServiceOwner) -> bool:
    """Tells whether an owner's service, by any plan it has or is about to have, is of a plan's group."""
    return any(is_beside(plan, other) for other in owner.plans)
