"""Which service is stopped where the memory is short, and what a new launch's watch remembers of the last one."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from no_engine import make_tools
from small_machine import SmallMachine
from stoker.records import GIB, MIB, Handle, SavedService, Service, State
from stoker.supervise.hands import Hands
from stoker.supervise.machine import MemoryLow
from stoker.supervise.supervisor import ROOM_LIMIT_S, Supervisor
from support import make_plan

NOW = time.time()


def who_may_go(folder: Path, **services: Service) -> set[str]:
    """Returns the services that would be stopped."""
    saved = [SavedService(make_plan(service=name), service) for name, service in services.items()]
    tools = make_tools(folder, SmallMachine(folder / "pids", 4 * GIB))
    supervisor = Supervisor(tools, saved, lambda one: None)
    return {name for name, owner in supervisor.owners.items() if supervisor.may_go(owner)}


def ready(since: float) -> Service:
    return Service(State.READY, since, "it answered", wanted=True, was_ready=True)


def test_the_last_that_came_up_goes_and_only_one_of_two_that_came_at_once(tmp_path: Path) -> None:
    assert who_may_go(tmp_path, old=ready(1.0), young=ready(2.0)) == {"young"}
    assert who_may_go(tmp_path, a=ready(1.0), b=ready(1.0)) == {"b"}


def test_one_that_waits_for_memory_has_none_to_give(tmp_path: Path) -> None:
    waits = Service(State.WAITING_FOR_MEMORY, NOW, "you asked for it", wanted=True)
    assert who_may_go(tmp_path, a=ready(1.0), b=waits) & {"a"} == {"a"}


@pytest.mark.parametrize("state", [State.STARTING, State.LOADING, State.PROVING])
def test_what_loads_is_left_to_the_watch_over_its_launch(tmp_path: Path, state: State) -> None:
    assert "a" not in who_may_go(tmp_path, a=ready(1.0), b=Service(state, NOW, "it loads", wanted=True))


@pytest.mark.parametrize("state", [State.LOADING, State.PROVING])
def test_one_that_was_taken_back_counts_as_one_that_serves(tmp_path: Path, state: State) -> None:
    back = Service(state, 2.0, "its engine was found alive", wanted=True, was_ready=True)
    assert who_may_go(tmp_path, a=ready(1.0), b=back) == {"b"}


@pytest.mark.parametrize("state", [State.STOPPING, State.SETTLING])
def test_what_stops_gives_its_memory_back_but_is_not_waited_for_for_ever(tmp_path: Path, state: State) -> None:
    assert "a" not in who_may_go(tmp_path, a=ready(1.0), b=Service(state, time.time(), "you asked for it"))
    assert "a" in who_may_go(tmp_path, a=ready(1.0), b=Service(state, time.time() - ROOM_LIMIT_S, "you asked for it"))


def test_what_drains_is_to_end_anyway_and_goes_first(tmp_path: Path) -> None:
    drains = Service(State.DRAINING, time.time(), "you asked for it", was_ready=True)
    assert who_may_go(tmp_path, a=ready(1.0), b=drains) == {"b"}


def make_hands(folder: Path) -> tuple[Hands, SmallMachine]:
    """Returns hands whose engine has a handle, on a machine of 4 GiB."""
    machine = SmallMachine(folder / "pids", 4 * GIB)
    hands = Hands(make_plan(memory_need_bytes=GIB), make_tools(folder, machine), lambda: None)
    hands.handle = Handle(1, "m", 7, 99, "b", 8001, 4 * GIB)
    return hands, machine


def test_a_launch_is_not_judged_by_what_was_low_in_the_last_one(tmp_path: Path) -> None:
    hands, machine = make_hands(tmp_path)
    hands.watch_launch(4 * GIB)
    machine.others_bytes = 3 * GIB + 256 * MIB
    assert hands.look(ready(1.0), may_go=True) is None
    hands._watchdog._low_since_s = time.monotonic() - 60.0
    assert isinstance(hands.look(ready(1.0), may_go=True), MemoryLow)
    hands.watch_launch(4 * GIB)
    assert hands.look(ready(1.0), may_go=True) is None


def test_an_engine_that_was_taken_back_outlives_a_short_peak_of_its_neighbours(tmp_path: Path) -> None:
    hands, machine = make_hands(tmp_path)
    machine.others_bytes = 3 * GIB + 256 * MIB
    back = Service(State.LOADING, NOW, "its engine was found alive", wanted=True, was_ready=True)
    assert hands.look(back, may_go=True) is None
    fresh = Service(State.LOADING, NOW, "it loads", wanted=True)
    assert isinstance(hands.look(fresh, may_go=True), MemoryLow)


def test_what_an_end_gives_back_little_by_little_is_not_taken_for_what_was_left_before_it(tmp_path: Path) -> None:
    hands, machine = make_hands(tmp_path)
    machine.others_bytes = 2 * GIB
    hands.look(ready(1.0), may_go=True)
    machine.others_bytes = GIB
    hands.look(Service(State.STOPPING, NOW, "you asked for it"), may_go=False)
    assert hands.last_available_bytes == 2 * GIB


def test_a_launch_that_was_not_watched_from_its_first_moment_has_no_known_low(tmp_path: Path) -> None:
    hands, _ = make_hands(tmp_path)
    hands.look(ready(1.0), may_go=True)
    assert hands.low_bytes is None
    hands.watch_launch(4 * GIB)
    hands.look(ready(1.0), may_go=True)
    assert hands.low_bytes == 4 * GIB
