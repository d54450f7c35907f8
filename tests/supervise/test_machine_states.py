"""The life of a service: every move by table, and what is promised for any sequence of events."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.records import Service, State
from stoker.supervise import machine as m
from stoker.supervise.machine import JOBS, Event, Job, Policy, backoff_s, step

EVENTS: tuple[type[Event], ...] = (
    m.StartAsked, m.StopAsked, m.PauseAsked, m.Adopted, m.MemoryFree, m.MemoryRefused, m.Spawned, m.SpawnFailed, m.Healthy,
    m.Proved, m.Unfit, m.Exited, m.Drained, m.GroupGone, m.GroupStuck, m.Settled, m.NotSettled, m.BackoffOver,
    m.MemoryLow, m.Frozen, m.RestartAsked,
)  # fmt: skip

# What each state does with an event; what is not named here changes nothing. (`same`: the state stays, a field changes.)
MOVES: dict[str, dict[str, str]] = {
    "STOPPED": {"StartAsked": "WAITING_FOR_MEMORY", "StopAsked": "same", "Adopted": "LOADING"},
    "WAITING_FOR_MEMORY": {
        "MemoryFree": "STARTING",
        "MemoryRefused": "FAILED",
        "StopAsked": "STOPPED",
        "PauseAsked": "STOPPED",
    },
    "STARTING": {
        "Spawned": "LOADING",
        "SpawnFailed": "STOPPING",
        "MemoryLow": "STOPPING",
        "Exited": "STOPPING",
        "StopAsked": "STOPPING",
        "PauseAsked": "STOPPING",
    },
    "LOADING": {
        "Healthy": "PROVING",
        "Unfit": "STOPPING",
        "MemoryLow": "STOPPING",
        "Exited": "STOPPING",
        "StopAsked": "STOPPING",
        "PauseAsked": "STOPPING",
    },
    "PROVING": {
        "Proved": "READY",
        "Unfit": "STOPPING",
        "MemoryLow": "STOPPING",
        "Exited": "STOPPING",
        "StopAsked": "STOPPING",
        "PauseAsked": "STOPPING",
    },
    "READY": {
        "StopAsked": "DRAINING",
        "PauseAsked": "DRAINING",
        "Exited": "STOPPING",
        "MemoryLow": "STOPPING",
        "Frozen": "STOPPING",
        "RestartAsked": "DRAINING",
    },
    "DRAINING": {
        "Drained": "STOPPING",
        "MemoryLow": "STOPPING",
        "Exited": "STOPPING",
        "StopAsked": "STOPPING",
        "PauseAsked": "STOPPING",
        "StartAsked": "same",
    },
    "STOPPING": {
        "GroupGone": "SETTLING",
        "GroupStuck": "WEDGED",
        "StartAsked": "same",
        "StopAsked": "same",
        "PauseAsked": "same",
    },
    "SETTLING": {
        "Settled": "STOPPED",
        "NotSettled": "WEDGED",
        "StartAsked": "same",
        "StopAsked": "same",
        "PauseAsked": "same",
    },
    "FAILED": {"StartAsked": "WAITING_FOR_MEMORY", "StopAsked": "STOPPED"},
    "BACKOFF": {
        "BackoffOver": "WAITING_FOR_MEMORY",
        "StartAsked": "WAITING_FOR_MEMORY",
        "StopAsked": "STOPPED",
        "PauseAsked": "STOPPED",
    },
    "WEDGED": {"StartAsked": "STOPPING", "StopAsked": "STOPPING"},
}

ENGINE_MAY_LIVE = {
    State.STARTING, State.LOADING, State.PROVING, State.READY, State.DRAINING, State.STOPPING, State.SETTLING, State.WEDGED,
}  # fmt: skip

GOOD_RESULT: dict[Job, type[Event]] = {
    Job.AWAIT_MEMORY: m.MemoryFree,
    Job.SPAWN: m.Spawned,
    Job.AWAIT_HEALTH: m.Healthy,
    Job.PROVE: m.Proved,
    Job.DRAIN: m.Drained,
    Job.STOP_GROUP: m.GroupGone,
    Job.SETTLE: m.Settled,
    Job.BACK_OFF: m.BackoffOver,
}
RESULTS: dict[Job, tuple[type[Event], ...]] = {
    Job.AWAIT_MEMORY: (m.MemoryFree, m.MemoryRefused),
    Job.SPAWN: (m.Spawned, m.SpawnFailed),
    Job.AWAIT_HEALTH: (m.Healthy, m.Unfit, m.Exited),
    Job.PROVE: (m.Proved, m.Unfit, m.Exited),
    Job.DRAIN: (m.Drained, m.Exited),
    Job.STOP_GROUP: (m.GroupGone, m.GroupStuck),
    Job.SETTLE: (m.Settled, m.NotSettled),
    Job.BACK_OFF: (m.BackoffOver,),
}
POLICY = Policy(restarts=2, window_s=100.0)


def at_rest(state: State = State.STOPPED, **changes: object) -> Service:
    return msgspec.structs.replace(Service(state, 1.0, "as it was"), **changes)


def make(kind: type[Event], at: float, service: Service, why: str = "because") -> Event:
    return kind(at, why, launch=service.launch) if kind is m.Exited else kind(at, why)


def run(service: Service, *kinds: type[Event]) -> Service:
    for number, kind in enumerate(kinds):
        service, _ = step(service, make(kind, 10.0 + number, service), POLICY)
    return service


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("state", State)
def test_every_state_moves_on_every_event_as_the_table_says(state: State, kind: type[Event]) -> None:
    wanted = state is State.STOPPED or kind is m.RestartAsked  # nobody restarts what nobody wants
    before = at_rest(state, launch=4, then=State.STOPPED, wanted=wanted, was_ready=kind is m.RestartAsked)
    after, job = step(before, make(kind, 9.0, before), POLICY)
    to = MOVES[state].get(kind.__name__, "nothing")
    if to == "nothing":
        assert job is None
        assert msgspec.structs.replace(after, wanted=before.wanted) == before
        assert after == before or kind is m.StartAsked
    elif to == "same":
        assert (after.state, after.since, after.why, job) == (state, before.since, before.why, None)
    else:
        assert (after.state, after.since, job) == (State(to), 9.0, JOBS.get(State(to)))
        assert after.why == "because"


def test_the_table_names_every_state_and_only_real_events() -> None:
    assert set(MOVES) == set(State)
    assert {name for moves in MOVES.values() for name in moves} <= {kind.__name__ for kind in EVENTS}
    assert len(EVENTS) == len(m.Event.__subclasses__())


def test_a_life_without_trouble() -> None:
    service, states = at_rest(), []
    for kind in (
        m.StartAsked, m.MemoryFree, m.Spawned, m.Healthy, m.Proved, m.StopAsked, m.Drained, m.GroupGone, m.Settled,
    ):  # fmt: skip
        service = run(service, kind)
        states.append(str(service.state))
    assert " ".join(states) == "WAITING_FOR_MEMORY STARTING LOADING PROVING READY DRAINING STOPPING SETTLING STOPPED"
    assert (service.launch, service.wanted) == (1, False)


READY = run(at_rest(), m.StartAsked, m.MemoryFree, m.Spawned, m.Healthy, m.Proved)


def test_ready_is_exit_code_zero_and_a_failure_keeps_the_code_of_its_event() -> None:
    assert READY.code == 0
    loading = run(at_rest(), m.StartAsked, m.MemoryFree, m.Spawned)
    stopping, _ = step(loading, m.Unfit(5.0, "it did not load within 3 s (load_s)", 4), POLICY)
    failed = run(stopping, m.GroupGone, m.Settled)
    assert (failed.state, failed.code, failed.why) == (State.FAILED, 4, "it did not load within 3 s (load_s)")


def test_a_refused_start_keeps_its_code() -> None:
    refused, _ = step(run(at_rest(), m.StartAsked), m.MemoryRefused(5.0, "it does not fit", 3), POLICY)
    assert (refused.state, refused.code) == (State.FAILED, 3)


def test_an_engine_that_never_answered_is_not_started_again() -> None:
    deaths: list[tuple[type[Event], ...]] = [(m.Exited,), (m.Unfit,), (m.Healthy, m.Exited), (m.Healthy, m.Unfit)]
    for kinds in deaths:
        loading = run(at_rest(), m.StartAsked, m.MemoryFree, m.Spawned)
        assert run(loading, *kinds, m.GroupGone, m.Settled).state is State.FAILED


def test_an_engine_that_was_ready_is_started_again_until_the_budget_is_spent() -> None:
    service = READY
    for count in (1, 2):
        service = run(service, m.Exited, m.GroupGone, m.Settled)
        assert (service.state, len(service.restarts)) == (State.BACKOFF, count)
        service = run(service, m.BackoffOver, m.MemoryFree, m.Spawned, m.Healthy, m.Proved)
        assert service.state is State.READY
    assert run(service, m.Exited, m.GroupGone, m.Settled).state is State.FAILED


def test_restarts_that_lie_outside_the_window_do_not_count() -> None:
    service = msgspec.structs.replace(READY, restarts=(1.0, 2.0))
    after, _ = step(service, m.Exited(150.0, "it ended", launch=service.launch), POLICY)
    assert (after.then, after.restarts) == (State.BACKOFF, (150.0,))


def test_a_restart_that_fails_to_load_counts_too() -> None:
    service = run(
        READY, m.Exited, m.GroupGone, m.Settled, m.BackoffOver, m.MemoryFree, m.Spawned, m.Exited, m.GroupGone, m.Settled
    )
    assert (service.state, len(service.restarts)) == (State.BACKOFF, 2)


def test_restarts_are_recent_until_the_window_is_over() -> None:
    service = msgspec.structs.replace(READY, restarts=(100.0, 150.0))
    assert [len(m.recent_restarts(service, at, window_s=100.0)) for at in (151.0, 200.0, 250.0)] == [2, 1, 0]


def test_no_restarts_at_all_may_be_asked_for() -> None:
    after, _ = step(READY, m.Exited(20.0, "it ended", launch=READY.launch), Policy(restarts=0))
    assert after.then is State.FAILED


def test_asking_for_a_start_gives_a_new_budget() -> None:
    spent = run(READY, m.Exited, m.GroupGone, m.Settled)
    for begin in (spent, run(spent, m.StopAsked), at_rest(State.FAILED, restarts=(1.0, 2.0))):
        assert run(begin, m.StartAsked).restarts == ()
    for waits in (State.STOPPING, State.SETTLING, State.WEDGED, State.DRAINING):
        assert run(at_rest(waits, restarts=(1.0, 2.0)), m.StartAsked).restarts == ()


def test_the_pause_before_a_restart_doubles_up_to_a_minute() -> None:
    pauses = [backoff_s(at_rest(restarts=(1.0,) * count)) for count in range(1, 9)]
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
    assert backoff_s(at_rest()) == 1


def test_a_stop_while_starting_waits_for_the_group_and_the_memory() -> None:
    service = run(at_rest(), m.StartAsked, m.MemoryFree, m.StopAsked)
    assert service.state is State.STOPPING
    assert run(service, m.GroupGone).state is State.SETTLING
    assert run(service, m.GroupGone, m.Settled).state is State.STOPPED


def test_a_start_while_stopping_begins_again_only_when_the_memory_is_back() -> None:
    service = run(READY, m.StopAsked, m.StartAsked, m.Drained, m.StartAsked, m.GroupGone)
    assert service.state is State.SETTLING
    assert run(service, m.Settled).state is State.WAITING_FOR_MEMORY


def test_a_start_that_was_taken_back_while_stopping_does_not_happen() -> None:
    service = run(READY, m.StopAsked, m.StartAsked, m.Drained, m.StopAsked, m.GroupGone, m.Settled)
    assert (service.state, service.wanted) == (State.STOPPED, False)


@pytest.mark.parametrize("state", sorted(State))
def test_a_pause_never_makes_a_service_unwanted(state: State) -> None:
    for then in (State.STOPPED, State.FAILED, State.BACKOFF, State.WAITING_FOR_MEMORY):
        assert run(at_rest(state, wanted=True, then=then), m.PauseAsked).wanted
        assert not run(at_rest(state, wanted=False, then=then), m.PauseAsked).wanted


def test_a_failure_stays_a_failure_through_a_pause_so_that_no_daemon_tries_it_again() -> None:
    stopping = run(at_rest(), m.StartAsked, m.MemoryFree, m.Spawned, m.Unfit)
    assert run(stopping, m.PauseAsked, m.GroupGone, m.Settled).state is State.FAILED
    assert run(stopping, m.GroupGone, m.PauseAsked, m.Settled).state is State.FAILED


def test_a_restart_that_was_due_does_not_happen_in_a_pause() -> None:
    stopping = run(READY, m.Exited)
    service = run(stopping, m.PauseAsked, m.GroupGone, m.Settled)
    assert (service.state, service.wanted) == (State.STOPPED, True)


def test_a_paused_service_that_somebody_stops_is_not_started_by_the_next_daemon() -> None:
    paused = run(READY, m.PauseAsked, m.Drained, m.GroupGone, m.Settled)
    assert (paused.state, paused.wanted) == (State.STOPPED, True)
    assert not run(paused, m.StopAsked).wanted


def test_the_end_of_an_earlier_launch_changes_nothing() -> None:
    for state in State:
        service = at_rest(state, launch=5)
        for launch in (0, 4, 6):
            assert step(service, m.Exited(9.0, "late", launch=launch), POLICY) == (service, None)


def test_an_adopted_engine_has_to_prove_itself_and_keeps_its_launch() -> None:
    adopted = run(at_rest(wanted=True, launch=7), m.Adopted)
    assert (adopted.state, adopted.launch) == (State.LOADING, 7)
    assert run(adopted, m.Healthy, m.Proved).state is State.READY
    assert run(adopted, m.Exited).state is State.STOPPING


# What is promised for any sequence.

steps = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 40), st.integers(0, 9)), max_size=60)


def play(plan: list[tuple[int, int, int]], service: Service) -> Iterator[tuple[Service, Event, Service]]:
    """Yields (before, event, after): half of the events are what the present job would send, the rest is anything."""
    at = service.since
    for choice, wait_s, other in plan:
        at += wait_s
        job = JOBS.get(service.state)
        results = RESULTS[job] if job else (m.Exited, m.StartAsked)
        kind = results[choice % len(results)] if choice < 15 else EVENTS[(choice + other) % len(EVENTS)]
        event: Event = make(kind, at, service)
        if kind is m.Exited and other == 0:
            event = m.Exited(at, "late", launch=service.launch - 1)
        after, begun = step(service, event, POLICY)
        assert begun is (JOBS.get(after.state) if after.state is not service.state else None)
        yield service, event, after
        service = after


def play_to_end(plan: list[tuple[int, int, int]]) -> Service:
    return [at_rest(), *(after for _, _, after in play(plan, at_rest()))][-1]


@settings(max_examples=300)
@given(steps)
def test_whatever_happens_the_promises_hold(plan: list[tuple[int, int, int]]) -> None:
    gone_since_launch = True
    for before, event, after in play(plan, at_rest()):
        if isinstance(event, m.Adopted) and after is not before:
            gone_since_launch = False
        if after.state is State.READY and before.state is not State.READY:
            assert (before.state, type(event)) == (State.PROVING, m.Proved)
        if isinstance(event, m.GroupGone) and after is not before:
            gone_since_launch = True
        if after.launch != before.launch:
            assert after.launch == before.launch + 1
            assert gone_since_launch
            gone_since_launch = False
        if before.state in ENGINE_MAY_LIVE and after.state not in ENGINE_MAY_LIVE:
            assert (before.state, type(event)) == (State.SETTLING, m.Settled)
        if after.state is State.SETTLING and before.state is not State.SETTLING:
            assert (before.state, type(event)) == (State.STOPPING, m.GroupGone)


@settings(max_examples=300)
@given(steps)
def test_restarts_by_itself_never_exceed_the_budget_in_any_window(plan: list[tuple[int, int, int]]) -> None:
    faults: list[float] = []
    for before, event, after in play(plan, READY):
        if isinstance(event, m.StartAsked) and after is not before and after.restarts == ():
            faults = []
        if after.state is State.STOPPING and before.state is not State.STOPPING and after.then is State.BACKOFF:
            faults.append(event.at)
            assert sum(1 for at in faults if at > event.at - POLICY.window_s) <= POLICY.restarts
    assert faults == sorted(faults)


@settings(max_examples=300)
@given(steps, st.lists(st.integers(0, 2), min_size=12, max_size=12))
def test_a_stop_always_ends_in_stopped_or_wedged_and_unwanted(plan: list[tuple[int, int, int]], results: list[int]) -> None:
    service = run(play_to_end(plan), m.StopAsked)
    for choice in results:
        job = JOBS.get(service.state)
        if job:
            service = run(service, RESULTS[job][choice % len(RESULTS[job])])
    assert service.state in (State.STOPPED, State.WEDGED)
    assert not service.wanted


@settings(max_examples=300)
@given(steps)
def test_from_anywhere_a_start_whose_jobs_go_well_ends_in_ready(plan: list[tuple[int, int, int]]) -> None:
    service = run(play_to_end(plan), m.StartAsked)
    states = [service.state]
    while job := JOBS.get(service.state):
        service = run(service, GOOD_RESULT[job])
        states.append(service.state)
        assert len(states) < 12, states
    assert service.state is State.READY
    assert service.wanted
    assert all(one is not other for one, other in pairwise(states))


@settings(max_examples=200)
@given(steps, st.integers(1, 50))
def test_late_ends_of_other_launches_never_matter(plan: list[tuple[int, int, int]], distance: int) -> None:
    for _, _, service in play(plan, at_rest()):
        for launch in (service.launch - distance, service.launch + distance):
            assert step(service, m.Exited(1e6, "late", launch=launch), POLICY) == (service, None)


@settings(max_examples=200)
@given(steps)
def test_time_and_reason_change_exactly_with_the_state(plan: list[tuple[int, int, int]]) -> None:
    for before, event, after in play(plan, at_rest()):
        if after.state is before.state:
            assert (after.since, after.why) == (before.since, before.why)
        else:
            assert after.since == event.at
            assert after.why
