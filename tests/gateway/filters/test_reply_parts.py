"""What filters make of replies, by value: whole ones and streams, in whatever pieces they come."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.gateway.chain import Chain
from stoker.gateway.rewriting import EVENT_LIMIT_BYTES, WHOLE_LIMIT_BYTES, EventStream, Rewriter, WholeReply

CHAT = "/v1/chat/completions"
DONE = b"data: [DONE]\n\n"
Body = dict[str, Any]


def play(rewriter: Rewriter, pieces: Iterable[bytes], tokens: int | None = None) -> tuple[bytes, list[tuple[str, ...]]]:
    """Returns what comes out, and the questions that were raised; each has the same answer."""
    out, questions = b"", []

    def take(data: bytes) -> None:
        nonlocal out
        out += data
        while rewriter.question:
            questions.append(rewriter.question)
            out += rewriter.answer(tokens)

    for piece in pieces:
        take(rewriter.feed(piece))
    take(rewriter.end())
    return out, questions


def streamed(said: str, *pieces: bytes, tokens: int | None = None) -> tuple[bytes, list[tuple[str, ...]]]:
    return play(EventStream(Chain((said,)).reply_parts(CHAT)), pieces, tokens)


def whole(said: str, body: Body, tokens: int | None = None) -> tuple[Body, list[tuple[str, ...]]]:
    out, questions = play(WholeReply(Chain((said,)).reply_parts(CHAT)), [json.dumps(body).encode()], tokens)
    return json.loads(out), questions


def event(delta: Body, **more: Any) -> bytes:
    body = {"choices": [{"index": 0, "delta": delta, "finish_reason": None}], **more}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def usage(**more: Any) -> Body:
    return {"completion_tokens": 9, "prompt_tokens": 1, **more}


def chat(message: Body, **of_usage: Any) -> Body:
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage(**of_usage)}


@pytest.mark.parametrize("sent", ["reasoning", "reasoning_content"])
def test_thinking_comes_under_the_name_that_was_asked_for(sent: str) -> None:
    body = chat({"content": "a", sent: "t"})
    for wanted in ("reasoning", "reasoning_content"):
        assert whole(f"reasoning-field={wanted}", body)[0]["choices"][0]["message"] == {"content": "a", wanted: "t"}
    both = {"content": "a", "reasoning": "t", "reasoning_content": "t"}
    assert whole("reasoning-field", body)[0]["choices"][0]["message"] == both
    assert whole("reasoning-field", chat(both))[0]["choices"][0]["message"] == both


def test_a_field_without_thinking_is_left_alone() -> None:
    for message in ({"reasoning": None}, {"reasoning_content": None, "reasoning": None}, {"reasoning": ["x"]}):
        assert whole("reasoning-field=reasoning_content", chat(message))[0] == chat(message)


@pytest.mark.parametrize("details", [{}, {"reasoning_tokens": 0}, {"reasoning_tokens": None, "audio_tokens": 3}, None])
def test_thinking_that_the_engine_did_not_count_is_counted(details: Body | None) -> None:
    body = chat({"content": "a", "reasoning_content": "two plus two"}, completion_tokens_details=details)
    changed, questions = whole("reasoning-tokens", body, tokens=4)
    assert questions == [("two plus two",)]
    assert changed["usage"] == usage(completion_tokens_details={**(details or {}), "reasoning_tokens": 4})
    assert whole("reasoning-tokens", body, tokens=400)[0]["usage"]["completion_tokens_details"]["reasoning_tokens"] == 9
    assert whole("reasoning-tokens", body, tokens=None)[0] == body


def test_a_count_that_the_engine_gives_is_believed() -> None:
    counted = chat({"reasoning": "x"}, completion_tokens_details={"reasoning_tokens": 7})
    assert whole("reasoning-tokens", counted, tokens=4) == (counted, [])
    beside, questions = whole("reasoning-tokens", chat({"reasoning": "x"}, reasoning_tokens=7), tokens=4)
    assert (beside["usage"]["completion_tokens_details"], questions) == ({"reasoning_tokens": 7}, [])


def test_a_reply_without_thinking_is_not_asked_about() -> None:
    for body in (chat({"content": "a"}), chat({"content": "a", "reasoning": ""}), {"usage": 3}, {"usage": {}, "choices": 3}):
        assert whole("reasoning-tokens", body, tokens=4) == (body, [])


def test_the_thinking_of_a_stream_is_counted_once_before_its_usage_is_passed_on() -> None:
    events = [
        event({"role": "assistant", "content": None}, usage=None),
        event({"reasoning_content": "two "}, usage=usage()),  # vLLM's continuous_usage_stats
        event({"reasoning": "plus"}),
        event({"content": "four"}),
    ]
    last = b'data: {"choices": [], "usage": {"completion_tokens": 9}}\n\n'
    out, questions = streamed("reasoning-tokens", *events, last, DONE, tokens=2)
    assert questions == [("two plus",)]
    assert out.startswith(b"".join(events))
    assert out.removeprefix(b"".join(events)) == (
        b'data: {"choices":[],"usage":{"completion_tokens":9,"completion_tokens_details":{"reasoning_tokens":2}}}\n\n' + DONE
    )
    assert streamed("reasoning-tokens", *events, last, DONE, tokens=None)[0] == b"".join((*events, last, DONE))


def test_each_choice_is_counted_by_itself() -> None:
    choices = [{"index": n, "message": {"reasoning": text}, "finish_reason": "stop"} for n, text in enumerate("ab")]
    assert whole("reasoning-tokens", {"choices": choices, "usage": usage()}, 2)[1] == [("a", "b")]


def test_thinking_that_is_too_long_to_be_kept_is_not_counted() -> None:
    events = [event({"reasoning": "x" * 100_000}) for _ in range(6)]
    last = b'data: {"choices": [], "usage": {}}\n\n'
    assert streamed("reasoning-tokens", *events, last, tokens=5) == (b"".join((*events, last)), [])


def test_what_surrounds_a_changed_line_stays() -> None:
    before = b': ping\r\nevent: delta\r\nid: 7\r\ndata:{"choices":[{"delta":{"reasoning":"\xc3\xa4"}}]}\r\nretry: 3\r\n\r\n'
    out, _ = streamed("reasoning-field=reasoning_content", before)
    assert out == before.replace(b"reasoning", b"reasoning_content")


@pytest.mark.parametrize(
    "odd",
    [
        b'data: {"reasoning": \n\n',
        b'data: {"choices": [{"delta":\ndata: {"reasoning": "x"}}]}\n\n',
        b'data: "reasoning"\n\n',
        b'data: ["reasoning"]\n\n',
        b'data: {"choices": {"reasoning": 1}}\n\n',
        b'data: {"choices": [1, {"delta": "reasoning"}], "usage": []}\n\n',
        b'data: {"choices": [{"delta": {"reasoning": "\\ud83d"}}]}\n\n',
        b'data: {"choices": [{"delta": {"reasoning": "\xff"}}]}\n\n',
        b"data: " + b"[" * 5000 + b'"reasoning"\n\n',
        b'event: x\n: {"reasoning": "x"}\n\n',
        b'data: {"choices": [{"delta": {"reasoning": "the end never comes"}}]}\n',
        b'{"reasoning": 1}',
        b"\n\n\n\r\r\r\n\r\n",
    ],
)
def test_what_is_not_understood_is_passed_on_as_it_came(odd: bytes) -> None:
    for said in ("reasoning-field=reasoning_content", "reasoning-tokens"):
        assert streamed(said, odd, tokens=3) == (odd, [])


def test_an_event_that_is_too_large_passes_and_the_next_one_is_changed_again() -> None:
    large = event({"reasoning": "x" * EVENT_LIMIT_BYTES})
    for size in (7_000, 300_000, len(large), 2 * len(large)):
        data = large + event({"reasoning": "y"})
        pieces = [data[at : at + size] for at in range(0, len(data), size)]
        out, _ = streamed("reasoning-field=reasoning_content", *pieces)
        assert out.startswith(large)
        assert json.loads(out[len(large) + 6 :])["choices"][0]["delta"] == {"reasoning_content": "y"}


def test_a_whole_reply_that_is_too_large_passes() -> None:
    data = json.dumps(chat({"reasoning": "x" * WHOLE_LIMIT_BYTES})).encode()
    rewriter = WholeReply(Chain(("reasoning-field=reasoning_content",)).reply_parts(CHAT))
    assert play(rewriter, [data[:1000], data[1000:-1], data[-1:]])[0] == data


def cut(data: bytes, places: list[int]) -> list[bytes]:
    at = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[first:last] for first, last in pairwise(at)]


lines = st.sampled_from(
    [
        b'data: {"choices": [{"delta": {"reasoning": "\xc3\xa4\xf0\x9f\x99\x82"}, "finish_reason": null}]}',
        b'data: {"choices": [{"delta": {"reasoning_content": "b"}, "finish_reason": null}]}',
        b'data: {"choices": [{"delta": {"content": "c \xe4\xb8\xad"}}]}',
        b'data: {"choices": [], "usage": {"completion_tokens": 9}}',
        b"data: [DONE]", b"data: not json, reasoning", b": ping", b"event: x", b"data:", b"",
    ]
)  # fmt: skip
streams = st.lists(st.tuples(lines, st.sampled_from([b"\n", b"\r\n", b"\r", b"\n\n", b"\r\n\r\n", b"\r\r"])), max_size=12)
places = st.lists(st.integers(0, 2000), max_size=30)


@given(streams, places)
def test_the_pieces_in_which_a_stream_comes_make_no_difference(parts: list[tuple[bytes, bytes]], places: list[int]) -> None:
    data = b"".join(line + end for line, end in parts)
    for said in ("reasoning-field=reasoning", "reasoning-field=both", "reasoning-tokens"):
        assert streamed(said, *cut(data, places), tokens=3) == streamed(said, data, tokens=3)
        assert streamed(said, *(bytes((byte,)) for byte in data), tokens=3) == streamed(said, data, tokens=3)


@given(st.one_of(st.binary(max_size=300), streams.map(lambda parts: b"".join(a + b for a, b in parts))), places)
def test_a_chain_that_changes_nothing_gives_the_same_bytes(data: bytes, places: list[int]) -> None:
    assert play(EventStream(()), cut(data, places)) == (data, [])
    assert play(WholeReply(()), cut(data, places)) == (data, [])
    untold = streamed("reasoning-tokens", *cut(data, places), tokens=None)  # it asks, and nobody knows
    assert untold[0] == data


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "choices",
                        "delta",
                        "message",
                        "usage",
                        "reasoning",
                        "index",
                        "finish_reason",
                        "completion_tokens_details",
                        "completion_tokens",
                        "reasoning_tokens",
                    ]
                ),
                inner,
            )
        ),
    )
)
def test_no_shape_of_a_reply_breaks_a_filter(body: Any) -> None:
    data = json.dumps(body).encode()
    for said in ("reasoning-field", "reasoning-tokens"):
        parts = Chain((said,)).reply_parts(CHAT)
        assert json.loads(play(WholeReply(parts), [data], 3)[0] or b"0") is not ...
        assert streamed(said, b"data: " + data + b"\n\n", tokens=3)[0].endswith(b"\n\n")
