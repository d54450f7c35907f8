"""Decides what may be done with a service now, and says why not of the rest. Pure."""

from __future__ import annotations

from stoker.records import BEING_STARTED, Record, State
from stoker.records.dashboard import Deeds

LEAVING = frozenset({State.DRAINING, State.STOPPING, State.SETTLING})


class Standing(Record, frozen=True):
    """What is known of a service where something is to be done with it.

    `goes` are those that a switch to it would stop: none where there is room; None: not known before it is planned.
    `no_room` says why there could be no room for it at all. `switching` names the service of a switch that is under way.
    """

    state: State
    is_busy: bool
    goes: tuple[str, ...] | None = None
    no_room: str = ""
    switching: str = ""
    can_roll_back: bool = False
    is_foreign: bool = False


def deeds_of(seen: Standing) -> Deeds:
    """Returns what may be done, and why not what may not."""
    moving = f"it is {seen.state}" if seen.state in BEING_STARTED | LEAVING else ""
    switching = f"a switch to {seen.switching} is under way" if seen.switching else ""
    up = "it is up" if seen.state is State.READY else ""
    coming = moving if seen.state in BEING_STARTED else ""
    beside = f"there is no room beside {' and '.join(seen.goes)}: switch to it" if seen.goes else ""
    alone = "there is room for it: start it" if seen.goes == () else ""
    rests = "" if seen.is_busy else f"it is {seen.state}"
    former = "" if seen.can_roll_back else "it was never READY by another plan"
    return Deeds(
        start=_first(up, coming, switching, seen.no_room, beside),
        stop=_first(rests, moving if seen.state in LEAVING else ""),
        switch=_first(up, moving, switching, seen.no_room, alone),
        restart=_first(moving, "" if up else f"it is {seen.state}", switching, _foreign(seen)),
        rollback=_first(former, moving, switching),
    )


def _foreign(seen: Standing) -> str:
    return "it was adopted as it ran, and nobody could start it again" if seen.is_foreign else ""


def _first(*reasons: str) -> str | None:
    return next((reason for reason in reasons if reason), None)
