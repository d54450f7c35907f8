"""A long load in stretches: what came in each, and what was seen beside it."""

from __future__ import annotations

from typing import Any

from bench_seen import make_repeat, make_request, make_writes
from stoker.bench.counter_watch import Counted
from stoker.bench.machine import Sample
from stoker.bench.series import Beside, make_series, span_of
from stoker.counters import Counters
from stoker.records import GIB, Gpu, RequestSeen

BEGAN_S = 1000.0


def counted(at_s: float, accepted: int, drafts: int) -> Counted:
    """Returns a look at counters of an engine that accepts some of three draft tokens a step."""
    totals = {"drafts_total": drafts, "draft_tokens_total": 3 * drafts, "accepted_tokens_total": accepted}
    return Counted(BEGAN_S + at_s, Counters("vllm", totals, 1))


def request(at_s: float, **changes: Any) -> RequestSeen:
    """Returns a request of half a second, whose two tokens came with two writes."""
    times: dict[str, Any] = {"ttft_s": 0.2, "last_token_s": 0.4, "done_s": 0.5, "output_tokens": 2, "first_write_tokens": 1}
    writes = make_writes((0.2, 1), (0.4, 1))
    return make_request(**{"sent_at_s": at_s, "writes": writes, **times, **changes})


def test_each_stretch_has_what_was_seen_in_it() -> None:
    repeat = make_repeat(request(0.0), request(1.0), request(1.4, error="HTTP 500", writes=()))
    hot = Gpu("GB10", "12.1", None, None, 60.0, None, 2400, temperature_c=81)
    machine = (
        Sample(BEGAN_S + 0.1, 30 * GIB, (), 50.0), Sample(BEGAN_S + 0.6, 28 * GIB, (), 55.0),
        Sample(BEGAN_S + 1.1, None, (hot,), 40.0), Sample(BEGAN_S - 9.0, 1 * GIB, (), 99.0),
    )  # fmt: skip
    looks = (counted(0.01, 0, 0), counted(1.02, 20, 10), counted(2.01, 25, 20))
    first, second = make_series(repeat, 2.0, Beside(BEGAN_S, machine, looks))
    assert (first.answered, first.failed, first.total_tps, first.ttft_s) == (1, 0, 2.0, 0.2)
    assert (second.at_s, second.answered, second.failed) == (1.0, 1, 1)
    assert (first.accept_length, second.accept_length) == (3.0, 1.5)
    assert (first.available_bytes, second.available_bytes) == (28 * GIB, None)
    assert (first.temperature_c, second.temperature_c) == (55.0, 81.0), "of a GPU where there is one"


def test_what_nobody_saw_is_unknown() -> None:
    [only] = make_series(make_repeat(request(0.0)), 2.0, Beside(BEGAN_S))
    assert (only.accept_length, only.available_bytes, only.temperature_c) == (None, None, None)


def test_an_engine_that_was_started_anew_has_no_accept_length_there() -> None:
    looks = (counted(0.0, 50, 20), counted(1.0, 5, 2))
    [only] = make_series(make_repeat(request(0.0)), 2.0, Beside(BEGAN_S, (), looks))
    assert only.accept_length is None


def test_an_hour_is_a_point_a_minute() -> None:
    assert (span_of(3600.0), span_of(5.0)) == (60.0, 1.0)
