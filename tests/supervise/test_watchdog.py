"""The watchdog over a launch's memory, with samples given as values."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stoker.records import GIB, MIB
from stoker.supervise.watchdog import REACTION_S, SERVING_HOLD_S, STALL_HOLD_S, Launch, Watchdog
from support import make_memory

FLOOR = GIB
PAUSE_S = 0.025
SMALL = Launch(before_bytes=10 * GIB, claim_bytes=2 * GIB)
HUGE = Launch(before_bytes=10 * GIB, claim_bytes=9 * GIB)


def judge_fall(launch: Launch, bytes_per_s: float, until_bytes: int) -> tuple[str | None, int]:
    """Lets the memory fall evenly; returns the first reason to stop, and what was available then."""
    watchdog, at_s, available_bytes = Watchdog(FLOOR), 0.0, launch.before_bytes
    while available_bytes > until_bytes:
        if why := watchdog.judge_launch(at_s, make_memory(available_bytes), launch):
            return why, available_bytes
        at_s += PAUSE_S
        available_bytes -= int(bytes_per_s * PAUSE_S)
    return None, available_bytes


@given(st.floats(0.05, 12.0))
def test_a_launch_beyond_its_claim_is_stopped_while_there_is_time_to_end_it(gib_per_s: float) -> None:
    why, available_bytes = judge_fall(SMALL, gib_per_s * GIB, 0)
    assert why is not None
    assert "2.0 GiB were planned" in why
    assert available_bytes >= FLOOR + gib_per_s * GIB * (REACTION_S - 2 * PAUSE_S)


def test_a_cache_that_is_taken_at_once_is_no_trend() -> None:
    watchdog = Watchdog(FLOOR)
    for at_s, available_gib in ((0.0, 10), (0.025, 10), (0.05, 7), (0.075, 7), (0.1, 7)):
        assert watchdog.judge_launch(at_s, make_memory(available_gib * GIB), SMALL) is None


@given(st.floats(0.05, 12.0))
def test_a_launch_within_its_claim_may_be_as_fast_as_it_likes(gib_per_s: float) -> None:
    assert judge_fall(HUGE, gib_per_s * GIB, FLOOR + int(gib_per_s * GIB * PAUSE_S))[0] is None


def test_a_launch_under_the_floor_is_stopped_whoever_took_the_memory() -> None:
    why = Watchdog(FLOOR).judge_launch(0.0, make_memory(FLOOR - MIB), HUGE)
    assert why is not None
    assert "less than the 1.0 GiB kept for the system" in why


def test_a_service_that_answers_outlives_a_short_peak_of_its_neighbours() -> None:
    watchdog = Watchdog(FLOOR)
    low, enough = make_memory(FLOOR - MIB), make_memory(FLOOR)
    assert watchdog.judge_serving(0.0, low, HUGE) is None
    assert watchdog.judge_serving(SERVING_HOLD_S - 0.1, low, HUGE) is None
    assert watchdog.judge_serving(SERVING_HOLD_S, enough, HUGE) is None
    assert watchdog.judge_serving(SERVING_HOLD_S + 0.1, low, HUGE) is None
    assert watchdog.judge_serving(2 * SERVING_HOLD_S + 0.2, low, HUGE) is not None


@given(st.floats(0.05, 12.0))
def test_an_engine_that_grows_beyond_its_claim_while_it_serves_is_stopped_before_the_floor(gib_per_s: float) -> None:
    watchdog, at_s, available_bytes = Watchdog(FLOOR), 0.0, SMALL.before_bytes
    while available_bytes >= FLOOR:
        if watchdog.judge_serving(at_s, make_memory(available_bytes), SMALL):
            return
        at_s += PAUSE_S
        available_bytes -= int(gib_per_s * GIB * PAUSE_S)
    raise AssertionError("it was not stopped")


def test_half_of_the_floor_is_not_waited_below() -> None:
    assert Watchdog(FLOOR).judge_serving(0.0, make_memory(FLOOR // 2 - 1), HUGE) is not None


def test_a_machine_that_stalls_is_helped_only_where_memory_is_the_reason() -> None:
    for available_bytes, stops in ((FLOOR + MIB, True), (3 * FLOOR, False)):
        watchdog = Watchdog(FLOOR)
        memory = make_memory(available_bytes, full_stall_pct=80.0)
        assert watchdog.judge_serving(0.0, memory, HUGE) is None
        assert (watchdog.judge_serving(STALL_HOLD_S, memory, HUGE) is not None) == stops


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 2**37)), max_size=40))
def test_no_samples_break_it(samples: list[tuple[float, int]]) -> None:
    watchdog, at_s = Watchdog(FLOOR), 0.0
    for pause_s, available_bytes in samples:
        at_s += pause_s
        memory = make_memory(available_bytes)
        reasons = (watchdog.judge_launch(at_s, memory, SMALL), watchdog.judge_serving(at_s, memory, SMALL))
        if available_bytes >= SMALL.before_bytes:
            assert reasons[0] is None
