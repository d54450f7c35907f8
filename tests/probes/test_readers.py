"""Whatever bytes come, the readers return an answer or raise Trouble that can be shown; nothing else escapes."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.probes.kit.answer import join_chunks, read_answer, read_chunks
from stoker.probes.kit.asker import read_stream
from stoker.probes.kit.events import Event, read_events
from stoker.probes.kit.findings import Trouble
from stoker.probes.kit.reply import error_message
from stoker.probes.kit.routers import fell_back, who_answered
from stoker.probes.kit.wire import Call, Reply

CALL = Call("POST", "http://spark/v1/chat/completions", {}, b"{}", 1.0)
FIELDS = st.sampled_from(
    (
        "choices",
        "message",
        "delta",
        "content",
        "tool_calls",
        "function",
        "usage",
        "index",
        "error",
        "model",
        "logprobs",
        "id",
    )
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4) | FIELDS, inner, max_size=5),
    max_leaves=12,
)


def reply_of(body: bytes, status: int = 200, **headers: str) -> Reply:
    """Returns a reply that came all at once."""
    named = httpx.Headers({name.replace("_", "-"): value for name, value in headers.items()})
    return Reply(CALL, status, named, body, ((0.1, len(body)),), 0.2, "", False, False)


def bodies(value: Any) -> list[bytes]:
    """Returns a value as a whole reply, and as a stream of events."""
    text = json.dumps(value).encode()
    return [text, b"data: " + text + b"\n\ndata: [DONE]\n\n"]


@given(JSON)
def test_any_json_is_an_answer_or_trouble(value: Any) -> None:
    for body in bodies(value) + bodies({"choices": [value]}) + bodies({"choices": [{"message": value, "delta": value}]}):
        for read in (read_answer, read_stream, lambda reply: error_message(reply)):
            try:
                read(reply_of(body))
            except Trouble as trouble:
                assert trouble.says


@given(st.binary(max_size=300))
def test_any_bytes_are_an_answer_or_trouble(body: bytes) -> None:
    for status in (200, 301, 400, 500):
        for read in (read_answer, read_stream):
            try:
                read(reply_of(body, status))
            except Trouble as trouble:
                assert trouble.says


def delta(**parts: Any) -> dict[str, Any]:
    """Returns one event with a delta."""
    return {"choices": [{"index": 0, "delta": parts}]}


def test_deltas_make_the_message_that_clients_make_of_them() -> None:
    call = {"index": 1, "id": "b", "function": {"name": "get_time", "arguments": '{"ci'}}
    events = [
        delta(role="assistant", content=""), delta(reasoning="thi"), delta(reasoning="nk"), delta(content="Hel"),
        delta(content="lo"), delta(tool_calls=[call]),
        delta(tool_calls=[{"index": 1, "function": {"arguments": 'ty": 1}'}}]),
        delta(tool_calls=[{"index": 0, "id": "a", "function": {"name": "get_weather"}}]),
        {"choices": [{"index": 1, "delta": {"content": "another choice"}}]},
        {"choices": [], "usage": {"completion_tokens": 9}},
    ]  # fmt: skip
    answer = join_chunks(read_chunks([Event(0.0, event) for event in events]), reply_of(b""))
    assert (answer.text, answer.thought, answer.tokens) == ("Hello", "think", 9)
    told = [(call.id, call.name, call.arguments) for call in answer.calls]
    assert told == [("a", "get_weather", ""), ("b", "get_time", '{"city": 1}')]


def test_events_carry_the_time_at_which_they_had_come_whole() -> None:
    body = b'data: {"id": "1"}\n\ndata: {"id": "2"}\n\n: a comment\ndata: [DONE]\n\n'
    second = body.index(b"\n\n") + 2
    reply = reply_of(body)._replace(arrivals=((0.5, 4), (1.0, second), (2.0, len(body))))
    assert [(event.at_s, event.data) for event in read_events(reply)] == [
        (1.0, {"id": "1"}),
        (2.0, {"id": "2"}),
        (2.0, None),
    ]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error": {"message": "too long"}}', "too long"),
        (b'{"error": "busy"}', "busy"),
        (b'{"detail": "Not Found"}', "Not Found"),
        (b'{"message": "no route"}', "no route"),
        (b'{"detail": [{"msg": "wrong"}]}', '[{"msg":"wrong"}]'),
        (b"plain words", "plain words"),
        (b"", "nothing"),
    ],
)
def test_an_errors_own_words_are_found_wherever_they_are(body: bytes, said: str) -> None:
    assert error_message(reply_of(body, 400)) == said


def test_a_router_that_fell_back_is_named_by_its_headers() -> None:
    fell = reply_of(b"", x_litellm_attempted_fallbacks="2", x_litellm_model_api_base="http://other")
    plain = reply_of(b"", x_litellm_attempted_fallbacks="0", x_litellm_model_api_base="http://right")
    stepped = reply_of(b"", cf_aig_step="1")
    odd = [reply_of(b"", x_litellm_attempted_fallbacks=said) for said in ("many", "-1", "")]
    assert [fell_back(one) for one in (fell, plain, stepped, *odd)] == [True, False, True, False, False, False]
    assert who_answered([fell, plain]) == "1 fallback(s), answered by http://other"
    assert who_answered([plain]) == ""
