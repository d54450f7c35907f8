"""When an engine is taken for frozen, with what it shows given as values."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stoker.supervise.freeze import FreezeCheck

LIMIT_S = 10.0


def test_requests_without_any_sign_of_work_are_a_freeze_after_the_limit() -> None:
    check = FreezeCheck(LIMIT_S)
    assert check.judge(0.0, 3, "same") is None
    assert check.judge(9.9, 3, "same") is None
    assert "3 requests run, and for 10 s" in (check.judge(10.0, 3, "same") or "")


def test_an_engine_that_is_asked_nothing_may_be_as_still_as_it_likes() -> None:
    check = FreezeCheck(LIMIT_S)
    for at_s in range(0, 100, 5):
        assert check.judge(float(at_s), 0, "same") is None
    assert check.judge(100.0, 1, "same") is None, "the silence counts from the request on"
    assert check.judge(100.1, 1, "same") is None
    assert check.judge(109.0, 1, "same") is None


@given(st.lists(st.tuples(st.floats(0.1, 9.9), st.integers(0, 5)), max_size=30))
def test_whatever_moves_within_the_limit_is_no_freeze(samples: list[tuple[float, int]]) -> None:
    check, at_s = FreezeCheck(LIMIT_S), 0.0
    for number, (pause_s, requests) in enumerate(samples):
        at_s += pause_s
        assert check.judge(at_s, requests, number) is None
