"""When the default service comes back by itself, and what keeps it away."""

from __future__ import annotations

from typing import Any

import pytest

from stoker.plan.idle import ON_PURPOSE, Quiet, plan_return, plan_stops
from stoker.records import IdleSettings, RunningView, ServiceView, State

SETTINGS = IdleSettings(default_service="coder", idle_s=600.0)


def make_view(name: str, state: State = State.READY, since: float = 1000.0, why: str = "") -> ServiceView:
    """Returns a service as people see it."""
    return ServiceView(
        name=name, model=name, engine="command", state=state, since=since, why=why, address=None, pid=None,
        memory_bytes=None, memory_need_bytes=0, restarts=0, plan_id="p", exit_code=0,
    )  # fmt: skip


COMFY, CODER_GONE = make_view("comfy"), make_view("coder", State.STOPPED, why="comfy takes its place")


def test_no_default_service_means_no_return() -> None:
    assert plan_return(IdleSettings(), Quiet((COMFY,), 0.0)) is None


@pytest.mark.parametrize(("quiet_since", "returns_at"), [(0.0, 1600.0), (1000.0, 1600.0), (5000.0, 5600.0)])
def test_it_comes_back_when_nothing_was_asked_for_so_long_and_not_before_what_is_up_had_its_time(
    quiet_since: float, returns_at: float
) -> None:
    for services in ((COMFY, CODER_GONE), (COMFY,)):
        view = plan_return(SETTINGS, Quiet(services, quiet_since))
        assert view is not None
        assert view.returns_at == returns_at
        assert "nothing is asked of comfy" in view.why


@pytest.mark.parametrize(
    ("services", "facts", "why"),
    [
        ((COMFY, make_view("coder")), {}, "coder is up"),
        ((), {}, "nothing else is up"),
        ((make_view("comfy", State.STOPPED), CODER_GONE), {}, "nothing else is up"),
        ((COMFY, make_view("coder", State.LOADING)), {}, "coder is LOADING"),
        ((make_view("comfy", State.DRAINING), CODER_GONE), {}, "comfy is DRAINING"),
        ((COMFY, make_view("coder", State.STOPPED, why=ON_PURPOSE)), {}, "you took coder down"),
        ((COMFY, CODER_GONE), {"run": RunningView("podcast", 42, 1.0)}, "the workflow podcast runs (pid 42)"),
        ((COMFY, CODER_GONE), {"is_switching": True}, "a switch is under way"),
        ((COMFY, CODER_GONE), {"busy": "comfy has connections at its port"}, "comfy has connections at its port"),
        ((COMFY, CODER_GONE), {"failed_at": 2000.0}, "the last way back to coder failed, and nothing was asked since"),
    ],
)
def test_what_keeps_it_away_is_said(services: tuple[ServiceView, ...], facts: dict[str, Any], why: str) -> None:
    view = plan_return(SETTINGS, Quiet(services, 0.0, **facts))
    assert view is not None
    assert (view.returns_at, view.why) == (None, why)


def test_after_a_failed_way_back_a_request_makes_another_try_possible() -> None:
    view = plan_return(SETTINGS, Quiet((COMFY, CODER_GONE), 3000.0, failed_at=2000.0))
    assert view is not None
    assert view.returns_at == 3600.0


def test_a_default_that_failed_to_start_is_tried_again_once_others_were_up_for_so_long() -> None:
    view = plan_return(SETTINGS, Quiet((COMFY, make_view("coder", State.FAILED)), 0.0))
    assert view is not None
    assert view.returns_at == 1600.0


@pytest.mark.parametrize(
    ("own_s", "up", "returns_at"),
    [
        ({"comfy": 60.0}, (COMFY,), 1060.0),
        ({"comfy": 6000.0}, (COMFY,), 1600.0),
        ({"comfy": 60.0}, (COMFY, make_view("voice")), 1600.0),
        ({"comfy": 60.0, "voice": 90.0}, (COMFY, make_view("voice")), 1090.0),
    ],
)
def test_a_time_out_of_its_own_lets_the_default_come_back_earlier(
    own_s: dict[str, float], up: tuple[ServiceView, ...], returns_at: float
) -> None:
    view = plan_return(SETTINGS, Quiet((*up, CODER_GONE), 0.0, idle_s=own_s))
    assert view is not None
    assert view.returns_at == returns_at


@pytest.mark.parametrize(
    ("facts", "now", "stops"),
    [
        ({}, 1059.9, set()),
        ({}, 1060.0, {"comfy"}),
        ({"asked_at": {"comfy": 1030.0}}, 1080.0, set()),
        ({"asked_at": {"comfy": 1030.0}}, 1090.0, {"comfy"}),
        ({"asked_at": {"voice": 1030.0}}, 1060.0, {"comfy"}),
        ({"run": RunningView("podcast", 42, 1.0)}, 9999.0, set()),
        ({"is_switching": True}, 9999.0, set()),
        ({"services": (make_view("comfy", State.LOADING),)}, 9999.0, set()),
        ({"services": (make_view("comfy", State.DRAINING),)}, 9999.0, set()),
        ({"idle_s": {}}, 9999.0, set()),
    ],
)
def test_a_service_stops_after_its_own_time_out_and_others_never(facts: dict[str, Any], now: float, stops: set[str]) -> None:
    given = {"services": (COMFY, make_view("voice")), "idle_s": {"comfy": 60.0, "gone": 1.0}, **facts}
    found = plan_stops(Quiet(quiet_since=0.0, **given), now)
    assert set(found) == stops
    assert all("nothing was asked of it for 60 s (idle_s)" in why for why in found.values())
