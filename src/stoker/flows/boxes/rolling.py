"""Brings the replicas of a model to the plans that their boxes' stoker.toml have now, one after another.

Each box switches its own service: it lets requests end, starts the new plan, proves it, and goes back to the old one where
that fails. Meanwhile every door asks the other replicas. So whoever calls this may go away, and nothing is left drained.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from stoker.config import Paths
from stoker.errors import Refused, StokerError, WrongUse
from stoker.flows.boxes.linked import find_linked
from stoker.flows.bringing import tell_switch
from stoker.flows.client import Daemon
from stoker.flows.switch import check_switched
from stoker.records import ServiceView, State
from stoker.records.boxes import Outcome, RolledPlace

SEEN_S, LOOK_S = 10.0, 0.2
Say = Callable[[str], None]


class Place(NamedTuple):
    """A replica: its box (empty: this one), the daemon there, and the service as it was found."""

    box: str
    daemon: Daemon
    service: ServiceView

    @property
    def name(self) -> str:
        """As people are told of it."""
        return f"{self.service.name} on {self.box}" if self.box else f"{self.service.name} here"


def find_places(paths: Paths, daemon: Daemon, target: str) -> list[Place]:
    """Returns the replicas of a model, or of a service's name, that are READY: those of linked boxes, this one's last.

    Raises WrongUse where there is none. One that rests was stopped by somebody, and is not started by a change.
    """
    links = daemon.boxes()
    here = [one.name for one in links.boxes if one.is_here]
    daemons = [*((name, find_linked(paths, name)) for name in here), ("", daemon)]
    found = [
        Place(name, one, service)
        for name, one in daemons
        for service in one.status().services
        if target in (service.name, service.model) and service.answers and service.state is State.READY
    ]
    if not found:
        why, next_step = f"looked at: {', '.join([*here, links.name])}", "`stoker status` lists what is served"
        raise WrongUse(f"no box serves `{target}` now", why=why, next_step=next_step)
    return found


def choose_places(paths: Paths, places: Sequence[Place], boxes: Sequence[str], own_name: str) -> list[Place]:
    """Returns the replicas to change, in the order of `boxes`, or all; raises Refused where a link may only look."""
    by_box = {place.box or own_name: place for place in places}
    unknown = next((name for name in boxes if name not in by_box), None)
    if unknown is not None:
        raise WrongUse(f"no replica on `{unknown}` is READY", next_step=f"boxes with one: {', '.join(by_box)}")
    chosen = [by_box[name] for name in boxes] or list(places)
    for place in chosen:
        if place.box:
            find_linked(paths, place.box, act=True)
    return chosen


def check_no_gap(places: Sequence[Place]) -> None:
    """Raises Refused where nobody would answer while a replica changes."""
    if len(places) == 1:
        raise Refused(
            f"{places[0].name} is the only replica of {places[0].service.model} that is READY",
            why="while it changes, nobody would answer", next_step="bring another one up first, or say --allow-gap",
        )  # fmt: skip


def roll(daemon: Daemon, places: Sequence[Place], say: Say) -> Iterator[RolledPlace]:
    """Yields what became of each replica, and ends with the first that did not come up; raises nothing of a box."""
    for place in places:
        done = _change(daemon, place, say)
        yield done
        if done.outcome == "failed":
            return


def _change(daemon: Daemon, place: Place, say: Say) -> RolledPlace:
    before = place.service.plan_id
    say(f"{place.name}: changes, while the others answer")
    try:
        begun = place.daemon.switch_to(place.service.name)
        view = tell_switch(place.daemon, begun, lambda step: say(f"{place.name}: {step}"))
        check_switched(view)
        _await_seen(daemon, place, view.plan_id)
    except StokerError as problem:
        return RolledPlace(place.box, place.service.name, before, _plan_now(place), "failed", str(problem))
    outcome: Outcome = "unchanged" if view.plan_id == before else "changed"
    return RolledPlace(place.box, place.service.name, before, view.plan_id, outcome, view.why)


def _plan_now(place: Place) -> str | None:
    try:
        return next((one.plan_id for one in place.daemon.status().services if one.name == place.service.name), None)
    except StokerError:
        return None


def _await_seen(daemon: Daemon, place: Place, plan_id: str) -> None:
    """Waits until this door asks the replica again, so that the next one may change."""
    end = time.monotonic() + SEEN_S
    while place.box and not _is_seen(daemon, place, plan_id):
        if time.monotonic() > end:
            raise StokerError(
                f"this door does not see {place.name} as READY", why=f"its box told nothing of it within {SEEN_S:g} s",
                next_step="`stoker boxes status`",
            )  # fmt: skip
        time.sleep(LOOK_S)


def _is_seen(daemon: Daemon, place: Place, plan_id: str) -> bool:
    replicas = [one for box in daemon.boxes().boxes if box.name == place.box for one in box.replicas]
    told = (place.service.name, State.READY, plan_id)
    return any((one.service, one.state, one.plan_id) == told for one in replicas)
