"""What each verify step accepted, read from streams whose chunks are steps: a real SGLang's, and ones that hide some."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bad_endpoint import STREAM_HEAD
from bench_seen import run_bench
from bench_server import Play, Server, bench_server, ending, event, reply
from stoker.bench.events import Stream, read_stream
from stoker.bench.exchange import Piece
from stoker.bench.speculation import join_speculation
from stoker.bench.steps import accepted_by_steps, step_tokens, with_steps
from stoker.records import BenchLoad, CellResult, SpeculationSeen, Target

RECORDED = Path(__file__).parent / "recorded" / "sglang-0.5.16"
COUNTED = SpeculationSeen("counters of sglang", None, None, 6, None, 3.5)
STEPS = (1, 5, 9, 12, 13, 17, 21)  # tokens until each chunk: the prompt's own, and steps of 4, 4, 3, 1, 4 and 4
CALLS, SHARES = len(STEPS) - 1, (4 / 5, 4 / 5, 3 / 5)  # 3, 3, 2, 0 and 3 drafts; of the last step it is not known
VERIFIED = 5


def told(*until_now: int | None, usage: int | None = None) -> Stream:
    """Returns a stream whose chunks tell how many tokens there were until then."""
    counts = [f', "usage": {{"completion_tokens": {one}}}' if one is not None else "" for one in until_now]
    chunks = [f'data: {{"choices": [{{"delta": {{"content": "a"}}}}]{count}}}\n\n' for count in counts]
    if usage is not None:
        chunks.append(f'data: {{"choices": [], "usage": {{"completion_tokens": {usage}}}}}\n\n')
    return read_stream([Piece(float(place), chunk.encode()) for place, chunk in enumerate(chunks)])


@pytest.mark.parametrize("kind", ["standalone", "ngram"])
def test_a_real_stream_has_a_chunk_for_each_step(kind: str) -> None:
    stream = read_stream([Piece(0.0, (RECORDED / f"{kind}.stream-continuous.txt").read_bytes())])
    assert step_tokens(stream) == [4] * 6


def test_a_step_that_accepts_three_accepts_the_first_two_and_an_answers_last_step_does_not_count() -> None:
    both = with_steps(COUNTED, [told(*STEPS, usage=STEPS[-1])], VERIFIED - 1)
    assert both.accept_rate_by_position == SHARES
    assert both.accept_rate == pytest.approx(sum(SHARES) / 4)
    assert (both.accept_length, both.verify_steps, both.source) == (COUNTED.accept_length, CALLS, COUNTED.source)
    assert with_steps(COUNTED, [told(*STEPS)], None).accept_rate is None


def test_steps_that_are_not_as_many_as_were_counted_tell_nothing() -> None:
    assert accepted_by_steps([told(*STEPS), told(1, 3)], CALLS + 1) == [3, 3, 2, 0, 3]
    assert accepted_by_steps([told(*STEPS)], CALLS + 1) == ()
    assert with_steps(COUNTED, [told(1, 5, 12, 13, 17, 21)], 4) is COUNTED  # two came as one
    assert with_steps(COUNTED, [told(1, None, 9, 12, 13, 17, 21)], 4) is COUNTED
    assert with_steps(COUNTED, [], 4) is COUNTED
    assert accepted_by_steps([told(*STEPS)], CALLS - 1) == ()  # somebody else's, or counted otherwise


def test_one_in_fifty_may_be_joined_and_what_is_more_than_a_step_can_have_is_left_out() -> None:
    many = [told(*STEPS)] * 9
    assert len(accepted_by_steps([*many, told(1, 9, 12, 13, 17, 21)], 10 * CALLS, 4)) == 10 * (CALLS - 1) - 2
    assert max(accepted_by_steps([*many, told(1, 9, 12, 13, 17, 21)], 10 * CALLS)) == 7
    assert accepted_by_steps([*many[1:], *[told(1, 9, 12, 13, 17, 21)] * 2], 10 * CALLS, 4) == ()


def test_a_step_may_have_two_chunks_or_at_the_end_none() -> None:
    assert step_tokens(told(1, 5, 5, 6)) == [4, 1]
    assert step_tokens(told(1, 5, usage=6)) == [4, 1]
    assert step_tokens(told()) == []


def test_no_draft_that_was_ever_accepted_leaves_the_places_untold() -> None:
    assert with_steps(COUNTED, [told(1, 2, 3, 4, 5, 6, 7)], 4).accept_rate_by_position == ()


def test_repeats_are_joined_by_their_steps() -> None:
    one = with_steps(COUNTED, [told(*STEPS)], 4)
    other = SpeculationSeen("counters of sglang", None, None, 18, 0.0, 1.0, (0.0,))
    joined = join_speculation([one, other])
    assert joined is not None
    assert joined.accept_rate_by_position == pytest.approx((1 / 5, 1 / 5, 3 / 20))
    assert joined.accept_rate == pytest.approx(sum(SHARES) / 4 / 4)
    assert joined.accept_length == pytest.approx((3.5 * 6 + 18) / 24)
    untold = join_speculation([one, COUNTED])
    assert untold is not None
    assert (untold.accept_rate, untold.accept_rate_by_position) == (None, None)


def speak_in_steps(server: Server, calls_each: int) -> list[dict[str, Any]]:
    """Makes a server tell its settings and counters as SGLang does; returns what it is asked as no stream."""
    whole: list[dict[str, Any]] = []

    def page() -> bytes:
        count = len(server.bodies)
        names = (("generation_tokens", 100 + STEPS[-1] * count), ("spec_verify_calls", 10 + calls_each * count))
        text = "".join(f"sglang:{name}_total {value}\n" for name, value in names)
        return f"HTTP/1.1 200 OK\r\ncontent-length: {len(text)}\r\n\r\n{text}".encode()

    def answer(body: dict[str, Any], send: Any, over: Any) -> None:
        whole.append(body)
        send(reply(200, json.loads((RECORDED / "standalone.chat-poem-0.json").read_text())))

    server.pages["/metrics"] = page
    server.pages["/server_info"] = lambda: reply(200, {"speculative_num_draft_tokens": VERIFIED})
    server.whole = answer
    return whole


def steps(body: dict[str, Any], send: Any, over: Any) -> None:
    """Answers in steps."""
    chunks = [event("a", usage={"completion_tokens": count}) for count in STEPS]
    send(STREAM_HEAD + b"".join(chunks) + ending(STEPS[-1]))


def measure(calls_each: int, always: Play = steps) -> tuple[CellResult, list[dict[str, Any]]]:
    """Returns a cell of two repeats, and what was asked as no stream."""
    with bench_server(tokens=STEPS[-1], always=always) as server:
        whole = speak_in_steps(server, calls_each)
        target = Target(f"{server.url}/v1", "echo")
        run = run_bench(target, new=STEPS[-1], runs=2, loads=(BenchLoad("closed", 2),))
    return run.cells[0], [body for body in whole if body.get("return_meta_info")]


def test_where_the_streams_tell_all_steps_nothing_more_is_asked() -> None:
    cell, more = measure(CALLS)
    assert more == []
    assert cell.speculation is not None
    assert cell.speculation.accept_rate_by_position == pytest.approx(SHARES)
    assert cell.speculation.accept_rate == pytest.approx(sum(SHARES) / (VERIFIED - 1))
    assert (cell.speculation.verify_steps, cell.speculation.accept_length) == (4 * CALLS, STEPS[-1] / CALLS)


def test_where_some_steps_came_as_one_whole_replies_are_asked_for_them() -> None:
    cell, more = measure(CALLS + 1)
    assert more
    assert cell.speculation is not None
    assert cell.speculation.source == f"counters of sglang; by position {len(more)} more replies"


def test_replies_that_drafted_otherwise_tell_nothing_of_those_measured_and_that_is_said() -> None:
    cell, more = measure(2 * CALLS)  # 1.8 tokens a step were counted, and the replies have 3.5
    assert more
    assert cell.speculation is not None
    assert (cell.speculation.accept_rate, cell.speculation.accept_rate_by_position) == (None, None)
    [said] = [text for text in cell.warnings if "by position" in text]
    assert "whose steps had 3.5 tokens, and those measured 1.8" in said
