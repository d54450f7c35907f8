"""What may be done with a service now; of everything else the reason is said."""

from __future__ import annotations

import pytest
from msgspec.structs import asdict

from stoker.plan.deeds import Standing, deeds_of
from stoker.records import BEING_STARTED, State

STOPPED = Standing(State.STOPPED, False, goes=())
READY = Standing(State.READY, True)


def may(seen: Standing) -> set[str]:
    return {name for name, why_not in asdict(deeds_of(seen)).items() if why_not is None}


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (STOPPED, {"start"}),
        (Standing(State.STOPPED, False), {"start", "switch"}),  # nobody knows yet what it needs
        (Standing(State.STOPPED, False, goes=("big",)), {"switch"}),
        (Standing(State.STOPPED, False, goes=("big",), can_roll_back=True), {"switch", "rollback"}),
        (Standing(State.STOPPED, False, no_room="never fits"), set()),
        (Standing(State.FAILED, False, goes=()), {"start"}),
        (Standing(State.BACKOFF, True, goes=()), {"start", "stop"}),
        (Standing(State.WEDGED, True, goes=()), {"start", "stop"}),
        (READY, {"stop", "restart"}),
        (Standing(State.READY, True, can_roll_back=True), {"stop", "restart", "rollback"}),
        (Standing(State.READY, True, is_foreign=True), {"stop"}),
        (Standing(State.READY, True, switching="other", can_roll_back=True), {"stop"}),
        (Standing(State.STOPPED, False, goes=(), switching="other"), set()),
        (Standing(State.DRAINING, True), {"start"}),
        (Standing(State.SETTLING, True, can_roll_back=True), {"start"}),
    ],
)
def test_what_may_be_done(seen: Standing, expected: set[str]) -> None:
    assert may(seen) == expected


@pytest.mark.parametrize("state", sorted(BEING_STARTED))
def test_what_comes_up_can_only_be_stopped(state: State) -> None:
    assert may(Standing(state, True, can_roll_back=True)) == {"stop"}


def test_why_not_names_who_is_in_the_way() -> None:
    deeds = deeds_of(Standing(State.STOPPED, False, goes=("big", "voice")))
    assert deeds.start == "there is no room beside big and voice: switch to it"
    assert deeds_of(STOPPED).switch == "there is room for it: start it"
    assert deeds_of(READY).start == "it is up"
    assert deeds_of(Standing(State.LOADING, True)).restart == "it is LOADING"
