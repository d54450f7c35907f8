"""The supervisor's services, and what stoker.toml would have started, as the gateway's door needs them."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import msgspec

from stoker.config import Config
from stoker.door_tables import model_of
from stoker.flows.history import History
from stoker.flows.menu import Menu
from stoker.flows.on_demand import OnDemand
from stoker.gateway.directory import Entry, NoSingleModel
from stoker.records import ANY, BEING_STARTED, RESTING, Abilities, Endpoint, Plan, Service, SettingValue, State, Wish
from stoker.supervise.service import ServiceOwner

RETRY_SOON_S, RETRY_LATER_S, LONGEST_RETRY_S = 5, 60, 3600
COMES = BEING_STARTED | {State.BACKOFF}
LOADS = frozenset({State.STARTING, State.LOADING})
NEVER_STARTED = "it was not started yet; a request for it does (on_demand)"


class Directory:
    """Finds who serves what; nothing of it waits for a disk."""

    def __init__(self, owners: dict[str, ServiceOwner], menu: Menu, on_demand: OnDemand, history: History) -> None:
        self._owners = owners
        self._menu = menu
        self._on_demand = on_demand
        self._history = history
        self._served_by: dict[str, str] = {}  # who answered for a model when it was last looked for
        self._ready: dict[str, tuple[tuple[Plan, Service, Endpoint | None, Config], Entry]] = {}
        self._begun = time.time()

    def ask(self, service: str) -> None:
        """Sees to it that a service is brought up, without waiting; raises StokerError where it is not to be now."""
        self._on_demand.ask(service)

    async def bring(self, service: str) -> None:
        """Returns once a service is READY; raises StokerError where it does not come up. Cancelling undoes nothing."""
        await self._on_demand.bring(service)

    def find(self, model: str) -> Entry | None:
        """Returns who answers for a model or an alias; raises NoSingleModel for one that stands for whatever runs."""
        return self._find_model(model) or self._find_alias(model)

    def entries(self) -> list[Entry]:
        """Returns all that a request may name: models, those that a request would start, and aliases."""
        aliases = (self._find_alias(name, must=False) for name in self._menu.aliases)
        return [*self._models(), *(entry for entry in aliases if entry is not None)]

    def _models(self) -> Iterator[Entry]:
        for name, owner in self._owners.items():
            if owner.plan.answers:
                yield self._running(name, owner)
        for wish, model in self._menu.on_demand():
            if wish.name not in self._owners:
                yield self._unstarted(wish, model)

    def _find_model(self, model: str) -> Entry | None:
        last = self._served_by.get(model)
        entry = self.find_service(last) if last is not None else None
        if entry is None or entry.model != model or not entry.answers:
            entry = next((one for one in self._models() if one.model == model), None)
            if entry is not None:
                self._served_by[model] = entry.service
        return entry

    def find_service(self, name: str) -> Entry | None:
        """Returns a service by its own name, also one that answers no model's requests."""
        if owner := self._owners.get(name):
            return self._running(name, owner)
        wish = self._menu.wish(name)
        return self._unstarted(wish, wish.served_name or name) if wish and self._menu.door(name).on_demand else None

    def _find_alias(self, alias: str, must: bool = True) -> Entry | None:
        target = self._menu.aliases.get(alias)
        if target is None:
            return None
        entry = self._find_any(alias, must) if target == ANY else self._find_model(target) or self.find_service(target)
        return entry._replace(model=alias, alias_of=entry.model) if entry is not None and entry.answers else None

    def _find_any(self, alias: str, must: bool) -> Entry | None:
        ready = [entry for entry in self._models() if entry.endpoint is not None]
        ready = [entry for entry in ready if not self._owners[entry.service].is_tried_out] or ready
        if len(ready) == 1:
            return ready[0]
        if must:
            raise NoSingleModel(alias, tuple(sorted(entry.model for entry in ready)))
        return None

    def _running(self, name: str, owner: ServiceOwner) -> Entry:
        made_of = (owner.plan, owner.service, owner.endpoint, self._menu.config)
        known = self._ready.get(name)
        if known is not None and known[0] == made_of:
            return known[1]
        entry = self._look_at(name, owner)
        if entry.endpoint is not None and not entry.waits_for:  # nothing else of it changes with time
            self._ready[name] = made_of, entry
        return entry

    def _look_at(self, name: str, owner: ServiceOwner) -> Entry:
        plan, service = owner.plan, owner.service
        model, endpoint, on_demand = plan.model, owner.endpoint, self._menu.door(name).on_demand
        wish = self._menu.wish(name)
        is_remade = on_demand and service.state in RESTING and wish is not None
        if is_remade and wish is not None:
            model = wish.served_name or name  # by its table, as it is started next
        comes = on_demand or service.state in COMES
        expected_s = 0.0 if endpoint is not None else self._expected_s(name, service.state, service.since) if comes else None
        limits, parallel = self._menu.limits(name), _find(plan, "parallel")
        if limits.running is None and isinstance(parallel, int):
            limits = msgspec.structs.replace(limits, running=parallel)
        if limits.tokens is None:
            limits = msgspec.structs.replace(limits, tokens=plan.kv_tokens)
        return Entry(
            name, model, service.state, service.since, service.why, _whole(_find(plan, "context")), endpoint,
            self._retry_after_s(name, service.state, on_demand, expected_s), limits,
            on_demand=on_demand, expected_s=expected_s, waits_for=self._on_demand.waits_for(name), answers=plan.answers,
            filters=self._menu.filters(name), revision=None if is_remade else plan.revision,
            plan_id=None if is_remade else plan.plan_id, abilities=Abilities() if is_remade else plan.abilities,
        )  # fmt: skip

    def _unstarted(self, wish: Wish, model: str) -> Entry:
        name, state = wish.name, State.STOPPED
        expected_s = self._expected_s(name, state, self._begun)
        return Entry(
            name, model, state, self._begun, NEVER_STARTED, wish.context, None,
            self._retry_after_s(name, state, True, expected_s), self._menu.limits(name),
            on_demand=True, expected_s=expected_s, waits_for=self._on_demand.waits_for(name),
            answers=model_of(wish) is not None, filters=wish.filters,
        )  # fmt: skip

    def _expected_s(self, name: str, state: State, since: float) -> float | None:
        whole_s = self._history.expected_s(name)
        if whole_s is None or state is State.PROVING:
            return None if whole_s is None else min(1.0, whole_s)
        return max(1.0, whole_s - (time.time() - since)) if state in LOADS else whole_s

    def _retry_after_s(self, name: str, state: State, on_demand: bool, expected_s: float | None) -> int:
        if pause_s := self._on_demand.pause_left_s(name):
            return math.ceil(pause_s)
        if state in RESTING and not on_demand:
            return RETRY_LATER_S
        return RETRY_SOON_S if expected_s is None else max(1, min(LONGEST_RETRY_S, math.ceil(expected_s)))


def _find(plan: Plan, name: str) -> SettingValue | None:
    return next((setting.value for setting in plan.settings if setting.name == name), None)


def _whole(value: SettingValue | None) -> int | None:
    return value if isinstance(value, int) else None
