"""Who serves what, on this box and on those that are linked to it."""

from __future__ import annotations

from collections.abc import Iterable

from stoker.flows.boxes.choosing import ANYWHERE, as_replica, choose, read_asked
from stoker.flows.boxes.fleet import Fleet
from stoker.flows.directory import Directory
from stoker.flows.menu import Menu
from stoker.gateway.directory import Entry
from stoker.gateway.exchange import Headers


class FleetDirectory:
    """This box's directory and its fleet as one; without other boxes, it is this box's."""

    def __init__(self, here: Directory, fleet: Fleet, menu: Menu) -> None:
        self._here = here
        self._fleet = fleet
        self._menu = menu

    def find(self, model: str, headers: Headers | None = None) -> Entry | None:
        """Returns who answers for a model or an alias; raises NoSingleModel or NoReplica where that is left open."""
        here = self._here.find(model)
        if not self._fleet.boxes:
            return here
        real = here.model if here is not None and here.alias_of is None else self._real(model, here)
        there = self._fleet.by_model.get(real, ())
        own = [] if here is None else [here._replace(model=real, alias_of=None, box=self._fleet.name)]
        replicas = [*own, *there]
        if not replicas:
            return None
        asked = read_asked(headers)
        found = choose(replicas, asked, self._fleet.load)
        if asked.box is not None:
            found = found._replace(is_named=True)
        return found if real == model else found._replace(model=model, alias_of=real)

    def _real(self, model: str, here: Entry | None) -> str:
        """Returns the model that a name stands for, which another box may serve."""
        if here is not None:
            return here.alias_of or here.model
        return self._menu.aliases.get(model, model)

    def find_another(self, entry: Entry, tried: frozenset[str]) -> Entry | None:
        """Returns another replica that is READY by the same revision and plan; none where the request named its box."""
        if entry.is_named:
            return None
        real = entry.alias_of or entry.model
        own = self._here.find(real)
        replicas = [*([] if own is None else [own._replace(box=self._fleet.name)]), *self._fleet.by_model.get(real, ())]
        alike = [one for one in replicas if one.endpoint is not None and _is_same(one, entry) and one.service not in tried]
        return choose(alike, ANYWHERE, self._fleet.load) if alike else None

    def find_service(self, name: str) -> Entry | None:
        """Returns a service by its own name, another box's as NAME@BOX."""
        if "@" in name:
            return self._fleet.entries.get(name)
        return self._here.find_service(name)

    def entries(self) -> list[Entry]:
        """Returns all that a request may name, each model once, with all places where it is served."""
        here = self._here.entries()
        if not self._fleet.boxes:
            return here
        own = [one._replace(box=self._fleet.name) for one in here if one.alias_of is None]
        listed: dict[str, list[Entry]] = {}
        for entry in (*own, *self._fleet.entries.values()):
            listed.setdefault(entry.model, []).append(entry)
        merged = [_merge(replicas) for replicas in listed.values()]
        return [*merged, *(one for one in here if one.alias_of is not None)]

    def ask(self, service: str) -> None:
        """Sees to it that a service of this box is brought up."""
        self._here.ask(service)

    async def bring(self, service: str) -> None:
        """Returns once a service of this box is READY."""
        await self._here.bring(service)


def _is_same(one: Entry, other: Entry) -> bool:
    return (one.revision, one.plan_id) == (other.revision, other.plan_id)


def _merge(replicas: list[Entry]) -> Entry:
    """Returns the entry of a model with all its replicas; a READY one speaks for them."""
    ready: Iterable[Entry] = (one for one in replicas if one.endpoint is not None)
    heard: Iterable[Entry] = (one for one in replicas if not one.away)
    first = next(iter(ready), None) or next(iter(heard), None) or replicas[0]
    return first._replace(replicas=tuple(map(as_replica, replicas)))
