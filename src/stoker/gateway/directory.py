"""Who serves what, as the door sees it, and how it is brought."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from stoker.errors import StokerError
from stoker.gateway.exchange import Headers
from stoker.records import Abilities, Endpoint, QueueLimits, State
from stoker.records.boxes import Replica


class Entry(NamedTuple):
    """One service, or an alias of one, at this moment; `endpoint` is None unless it is READY.

    `model` is what a request has to say; where that is an alias, `alias_of` is the real model. `answers`: it answers a
    model's requests. `expected_s` is the time to READY by former starts, None where nobody knows or nothing starts it;
    `waits_for` is what stands between a request for it and its start. `revision` and `plan_id` are of what runs or comes
    up; None where the next start makes a plan of its own. Of `abilities` nothing is known without a plan.
    `box`: it is another box's service, `away` says since when and why that box is not heard, and `replicas` are all places
    where the model is served, where more boxes than this one are known. `is_named`: the request named
    this box, and no other may answer it.
    """

    service: str
    model: str
    state: State
    since: float
    why: str
    context_tokens: int | None
    endpoint: Endpoint | None
    retry_after_s: int
    limits: QueueLimits
    alias_of: str | None = None
    on_demand: bool = False
    expected_s: float | None = None
    waits_for: str = ""
    answers: bool = True
    filters: tuple[str, ...] = ()
    revision: str | None = None
    plan_id: str | None = None
    abilities: Abilities = Abilities()
    box: str = ""
    away: str = ""
    replicas: tuple[Replica, ...] = ()
    is_named: bool = False


class NoReplica(StokerError):
    """Other boxes serve a model, and a request for it cannot be brought to one of them as it is."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class NoSingleModel(StokerError):
    """An alias stands for whatever runs, and nothing does, or more than one; `ready` are those that do."""

    def __init__(self, alias: str, ready: tuple[str, ...]) -> None:
        names = ", ".join(f"`{name}`" for name in ready)
        said = f"{len(ready)} are: {names}" if ready else "none is"
        super().__init__(f"`{alias}` stands for the one model that is READY, and {said}")
        self.ready = ready


class Directory(Protocol):
    """Who serves what, at this moment."""

    def find(self, model: str, headers: Headers | None = None) -> Entry | None:
        """Returns who answers for a model or an alias; raises NoSingleModel for one that stands for whatever runs.

        Where several boxes serve it, the request's headers may name a box, a revision or an affinity; raises NoReplica.
        """

    def find_another(self, entry: Entry, tried: frozenset[str]) -> Entry | None:
        """Returns another replica that is READY by the same revision and plan, where the box of one cannot be reached."""

    def find_service(self, name: str) -> Entry | None:
        """Returns a service by its own name, also one that answers no model's requests."""

    def entries(self) -> list[Entry]:
        """Returns all that a request may name: models, those that a request would start, and aliases."""

    def ask(self, service: str) -> None:
        """Sees to it that a service is brought up, without waiting; raises StokerError where it is not to be now."""

    async def bring(self, service: str) -> None:
        """Returns once a service is READY; raises StokerError where it does not come up. Cancelling undoes nothing."""
