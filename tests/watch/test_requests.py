"""Requests by how they ended."""

from __future__ import annotations

import pytest

from stoker.records import UsageRecord
from stoker.watch.requests import Ended, RequestCheck, Timed, ended, time_streams


def play(*parts: tuple[int, int | None, float], step_s: float = 10.0, left: bool = False) -> tuple[RequestCheck, float]:
    """A check after some requests: how many, their status, and their TTFT; and when the last one ended.

    `left`: the clients of the last part left before their answers were whole.
    """
    check, at_s = RequestCheck("coder"), 0.0
    for count, status, ttft_s in parts:
        for _ in range(count):
            at_s += step_s
            check.take(Ended(at_s, status, ttft_s, 0.05, is_stream=True, left=left and (count, status, ttft_s) == parts[-1]))
            check.look(at_s)
    return check, at_s


def test_one_failure_of_ten_is_said_and_one_of_thirty_is_not() -> None:
    check, at_s = play((27, 200, 0.5), (3, 500, 0.5))
    assert check.look(at_s)["errors", "coder"] == "3 of 30 requests failed"
    check, at_s = play((29, 200, 0.5), (1, 502, 0.5))
    assert check.look(at_s)["errors", "coder"] is None


def test_failures_are_forgotten() -> None:
    check, at_s = play((3, 500, 0.5))
    assert check.look(at_s + 700)["errors", "coder"] is None


def test_refused_clients_and_those_that_leave_are_told_apart() -> None:
    check, at_s = play((5, 200, 0.5), (10, 404, 0.0))
    assert "10 of 15 requests were refused as wrong" in str(check.look(at_s)["client-errors", "coder"])
    assert check.look(at_s)["requests-aborted", "coder"] is None


@pytest.mark.parametrize("status", [None, 200])
def test_clients_that_leave_are_counted_whether_their_answer_had_begun_or_not(status: int | None) -> None:
    check, at_s = play((5, 200, 0.5), (10, status, 0.0), left=True)
    assert "10 of 15 requests were given up by their client" in str(check.look(at_s)["requests-aborted", "coder"])
    assert check.look(at_s)["errors", "coder"] is None
    check, at_s = play((5, 200, 0.5), (10, status, 0.0))
    assert check.look(at_s)["requests-aborted", "coder"] is None


def test_what_is_usual_is_known_to_the_next_daemon() -> None:
    before, at_s = play((500, 200, 3.0))
    check = RequestCheck("coder")
    check.restore(before.keep())
    for number in range(20):
        check.take(Ended(at_s + number, 200, 12.0, 0.05, is_stream=True))
    assert "12.0 s for its first token; 3.0 s are usual" in str(check.look(at_s + 20)["ttft-slow", "coder"])
    check.restore([[float("nan"), -1.0], [float("inf")]])
    assert "3.0 s are usual" in str(check.look(at_s + 20)["ttft-slow", "coder"])


def test_first_tokens_are_held_against_their_own_past() -> None:
    check, at_s = play((500, 200, 3.0))
    assert check.look(at_s)["ttft-slow", "coder"] is None
    for number in range(60):
        check.take(Ended(at_s + number, 200, 12.0, 0.05, is_stream=True))
    assert "12.0 s for its first token; 3.0 s are usual" in str(check.look(at_s + 60)["ttft-slow", "coder"])


def test_short_waits_are_nothing_even_where_they_are_many_times_the_usual() -> None:
    check, at_s = play((500, 200, 0.1))
    for number in range(60):
        check.take(Ended(at_s + number, 200, 1.5, 0.05, is_stream=True))
    assert check.look(at_s + 60)["ttft-slow", "coder"] is None


def test_tokens_that_come_slowly_are_said() -> None:
    check, at_s = play((500, 200, 0.1))
    for number in range(60):
        check.take(Ended(at_s + number, 200, 0.1, 0.15, is_stream=True))
    assert "150 ms a token; 50 ms are usual" in str(check.look(at_s + 60)["decode-slow", "coder"])


@pytest.mark.parametrize(("usual", "then"), [("streams", "whole"), ("whole", "streams")])
def test_whole_replies_say_nothing_of_the_times_of_streams(usual: str, then: str) -> None:
    kinds = {"streams": (0.3, 0.029, True), "whole": (9.0, 0.00001, False)}  # of the same answers
    check = RequestCheck("coder")
    for number in range(560):
        ttft_s, token_s, is_stream = kinds[usual if number < 500 else then]
        check.take(Ended(10.0 * number, 200, ttft_s, token_s, is_stream))
        looked = check.look(10.0 * number)
        assert (looked["ttft-slow", "coder"], looked["decode-slow", "coder"]) == (None, None)


def test_the_time_of_a_token_is_without_the_first() -> None:
    record = UsageRecord(0, "owner", "/v1/chat/completions", "r", 5.0, 200, "coder", "m", 10, 41, None, 1.0)
    assert ended(7.0, record, left=True) == Ended(7.0, 200, 1.0, 0.1, is_stream=True, left=True)
    assert ended(7.0, UsageRecord(0, "owner", "/", "r", 5.0)) == Ended(7.0, None, None, None)


def test_times_are_those_of_streams_alone() -> None:
    def usage(duration_s: float, ttft_s: float | None, tokens: int | None) -> Ended:
        return ended(7.0, UsageRecord(0, "owner", "/", "r", duration_s, 200, "coder", "m", 10, tokens, None, ttft_s))

    whole, refused = usage(5.001, 5.0, 41), usage(0.1, None, None)
    silent, counted = usage(5.0, 2.0, None), usage(5.0, 1.0, 41)
    assert time_streams([whole, refused]) is None
    assert time_streams([whole, silent, counted, refused]) == Timed(2, 3.0, 2.0, 1, 0.1)
