"""Who has to stand before the gate, as a function of its plan and its life."""

from __future__ import annotations

import pytest

from stoker.records import Service, State
from stoker.supervise.gating import is_due
from stoker.supervise.machine import (
    Adopted,
    BackoffOver,
    Drained,
    Event,
    Exited,
    GroupGone,
    Healthy,
    MemoryFree,
    Proved,
    Settled,
    Spawned,
    StartAsked,
    StopAsked,
    step,
)
from support import make_plan

GATED, FREE = make_plan(gate=("answers",)), make_plan()
UP: tuple[type[Event], ...] = (StartAsked, MemoryFree, Spawned, Healthy)
GONE: tuple[type[Event], ...] = (GroupGone, Settled)


def live(*events: type[Event]) -> Service:
    """Returns a service after these events, the last of which brings it to its proof."""
    service = Service(State.STOPPED, 0.0, "it is new")
    for number, kind in enumerate(events):
        event = Exited(float(number), launch=service.launch) if kind is Exited else kind(float(number))
        service, _ = step(service, event)
    assert service.state is State.PROVING
    return service


@pytest.mark.parametrize(
    ("events", "due"),
    [
        (UP, True),
        ((*UP, Exited, *GONE, *UP), True),
        ((*UP, Proved, Exited, *GONE, BackoffOver, *UP[1:]), False),
        ((*UP, Proved, Exited, *GONE, BackoffOver, *UP[1:3], Exited, *GONE, BackoffOver, *UP[1:]), False),
        ((*UP, Proved, StopAsked, Drained, *GONE, *UP), True),
    ],
    ids=["first start", "after a start that failed", "after a fault", "after a second fault", "after a stop"],
)
def test_a_start_that_was_asked_for_has_a_gate_and_one_after_a_fault_has_none(
    events: tuple[type[Event], ...], due: bool
) -> None:
    service = live(*events)
    assert is_due(GATED, service) is due
    assert not is_due(FREE, service)


@pytest.mark.parametrize("was_ready", [True, False])
def test_an_engine_that_is_taken_back_has_a_gate_unless_it_was_ready(was_ready: bool) -> None:
    service, _ = step(Service(State.STOPPED, 0.0, "", wanted=True, was_ready=was_ready), Adopted(1.0))
    service, _ = step(service, Healthy(2.0))
    assert service.state is State.PROVING
    assert is_due(GATED, service) is not was_ready
