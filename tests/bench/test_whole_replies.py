"""What SGLang tells of drafts in whole replies alone: asked for by some more, and set beside what its counters tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench_seen import run_bench
from bench_server import Play, Server, bench_server, refuses, reply
from stoker.bench.arrivals import TraceLine
from stoker.bench.whole_replies import told_by_replies
from stoker.records import BenchLoad, SpeculationSeen, Target

RECORDED = Path(__file__).parent / "recorded" / "sglang-0.5.16"
COUNTERS = "sglang:generation_tokens_total {tokens}\nsglang:spec_verify_calls_total {calls}\n"
NEW, CALLS = 8, 2
LENGTH = NEW / CALLS  # tokens of a step by the counters; 3.5 by the replies below


def recorded(name: str) -> dict[str, Any]:
    """Returns what a real SGLang replied."""
    found: dict[str, Any] = json.loads((RECORDED / f"{name}.json").read_text())
    return found


def meta(name: str) -> dict[str, Any]:
    """Returns what a real reply tells of itself."""
    found: dict[str, Any] = recorded(name)["choices"][0]["meta_info"]
    return found


def test_how_many_drafts_each_step_accepted_makes_the_rate_of_each_place() -> None:
    [one] = [told_by_replies([meta("standalone.chat-poem-0")])]
    assert one is not None
    assert (one.draft_tokens, one.accepted_tokens, one.verify_steps) == (138, 114, 46)
    assert one.accept_rate == meta("standalone.chat-poem-0")["spec_accept_rate"]
    assert one.accept_rate_by_position == (42 / 46, 37 / 46, 35 / 46)  # 4, 5, 2 and 35 steps accepted 0, 1, 2 and 3


def test_replies_are_added_up_whose_longest_steps_differ() -> None:
    both = told_by_replies([meta("ngram.chat-poem-0"), meta("ngram.chat-code-1")])
    assert both is not None
    assert both.accept_rate_by_position == (21 / 158, 4 / 158)
    assert both.accept_rate == 25 / 474


@pytest.mark.parametrize("lacks", ["spec_verify_ct", "spec_num_proposed_drafts", "spec_correct_drafts_histogram"])
def test_one_reply_that_does_not_tell_makes_all_unknown(lacks: str) -> None:
    other = {name: value for name, value in meta("standalone.chat-code-1").items() if name != lacks}
    assert told_by_replies([meta("standalone.chat-code-1"), other]) is None
    assert told_by_replies([{}]) is None


def speak_like_sglang(server: Server, whole: Play) -> list[dict[str, Any]]:
    """Makes a server count as SGLang does; returns what it is asked as no stream."""
    asked: list[dict[str, Any]] = []

    def page() -> bytes:
        text = COUNTERS.format(tokens=100 + NEW * len(server.bodies), calls=10 + CALLS * len(server.bodies))
        return f"HTTP/1.1 200 OK\r\ncontent-length: {len(text)}\r\n\r\n{text}".encode()

    def answer(body: dict[str, Any], *more: Any) -> None:
        asked.append(body)
        whole(body, *more)

    server.pages["/metrics"] = page
    server.whole = answer
    return asked


def measured(server: Server, requests: int, turns: int = 1, **more: Any) -> SpeculationSeen:
    """Returns what a run of two repeats tells of drafts."""
    target = Target(f"{server.url}/v1", "echo")
    run = run_bench(target, new=NEW, runs=2, loads=(BenchLoad("closed", requests),), turns=turns, **more)
    told = run.cells[0].speculation
    assert told is not None
    return told


@pytest.mark.parametrize(("requests", "more"), [(1, 2), (3, 4), (6, 6), (12, 12)])
def test_measured_prompts_are_asked_again_as_no_stream_and_the_counters_keep_the_length(requests: int, more: int) -> None:
    with bench_server(tokens=NEW) as server:
        poem = recorded("standalone.chat-poem-0")
        asked = speak_like_sglang(server, lambda body, send, over: send(reply(200, poem)))
        told = measured(server, requests)
    whole = [body for body in asked if body.get("return_meta_info")]
    assert len(whole) == more
    measured_last = [one["messages"] for one in server.bodies[-2 * requests :]]
    assert all(body["messages"] in measured_last for body in whole)
    assert len({json.dumps(body["messages"]) for body in whole}) == more  # each once
    assert not [body for body in whole if "stream" in body or "stream_options" in body]
    assert {body["max_tokens"] for body in whole} == {NEW}
    assert told.source == f"counters of sglang; by position {more} more replies"
    assert (told.verify_steps, told.accept_length) == (2 * requests * CALLS, LENGTH)
    assert told.accept_rate_by_position == (42 / 46, 37 / 46, 35 / 46)
    assert (told.accept_rate, told.draft_tokens) == (114 / 138, None)


def test_where_several_would_take_long_one_is_asked() -> None:
    with bench_server(tokens=NEW) as server:
        asked = speak_like_sglang(server, lambda body, send, over: send(reply(200, recorded("standalone.chat-poem-0"))))
        told = measured(server, 1, budget_s=1e-6)
    assert len([body for body in asked if body.get("return_meta_info")]) == 1
    assert told.source == "counters of sglang; by position one more reply"


HOLES = dict.fromkeys(("spec_num_proposed_drafts", "spec_num_correct_drafts", "spec_verify_ct"), 9) | {
    "spec_correct_drafts_histogram": [None, 1]
}
REFUSALS: dict[str, Play] = {
    "refuses": refuses(400, "return_meta_info is not known"),
    "silent": lambda body, send, over: send(reply(200, {"choices": [{"message": {"content": "a"}}]})),
    "odd": lambda body, send, over: send(reply(200, {"choices": [{"meta_info": {"spec_verify_ct": "many"}}]})),
    "holes": lambda body, send, over: send(reply(200, {"choices": [{"meta_info": HOLES}]})),
    "no-json": lambda body, send, over: send(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n<no>"),
}


@pytest.mark.parametrize("how", REFUSALS)
def test_where_replies_do_not_tell_the_counters_are_all_there_is(how: str) -> None:
    with bench_server(tokens=NEW) as server:
        asked = speak_like_sglang(server, REFUSALS[how])
        told = measured(server, 1)
    assert [body for body in asked if body.get("return_meta_info")]
    assert (told.source, told.accept_length, told.accept_rate_by_position) == ("counters of sglang", LENGTH, None)


def test_of_a_load_that_was_kept_up_the_first_four_are_asked_again() -> None:
    with bench_server(tokens=NEW) as server:
        asked = speak_like_sglang(server, lambda body, send, over: send(reply(200, recorded("standalone.chat-poem-0"))))
        assert measured(server, 1, soak_s=1.0).accept_rate_by_position is not None
    again = [body["messages"] for body in asked if body.get("return_meta_info")]
    measured_words = [body["messages"] for body in server.bodies]
    places = [measured_words.index(one) for one in again]
    assert places == list(range(places[0], places[0] + 4))  # behind the warm-ups, in turn


def test_each_request_of_a_trace_is_asked_again_for_its_own_length() -> None:
    trace = [TraceLine(0.0, 64, NEW), TraceLine(0.01, 128, 2 * NEW)]
    with bench_server(tokens=NEW) as server:
        asked = speak_like_sglang(server, lambda body, send, over: send(reply(200, recorded("standalone.chat-poem-0"))))
        measured(server, 1, trace=trace)
    again = [body for body in asked if body.get("return_meta_info")]
    assert [body["max_tokens"] for body in again] == [NEW, 2 * NEW] * 2  # of two repeats


def test_talks_of_several_turns_are_asked_for_their_first() -> None:
    with bench_server(tokens=NEW) as server:
        asked = speak_like_sglang(server, lambda body, send, over: send(reply(200, recorded("standalone.chat-poem-0"))))
        assert measured(server, 1, turns=2).accept_rate_by_position is not None
    assert {len(body["messages"]) for body in asked if body.get("return_meta_info")} == {1}
