"""What the end of a reply tells, by value."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.gateway.tail import Counted, read_counted, read_models

VLLM = (
    b'data: {"id":"x","model":"qwen","choices":[{"index":0,"delta":{"content":"b"}}],"usage":null}\n\n'
    b'data: {"id":"x","model":"qwen","choices":[],"usage":{"prompt_tokens":8,"total_tokens":12,"completion_tokens":4,'
    b'"prompt_tokens_details":{"cached_tokens":6}}}\n\ndata: [DONE]\n\n0\r\n\r\n'
)
CLAUDE = b'event: message_delta\ndata: {"type":"message_delta","usage":{"input_tokens":3,"output_tokens":5}}\n\n'


@pytest.mark.parametrize(
    ("tail", "counted"),
    [
        (VLLM, Counted(8, 4, 6)), (CLAUDE, Counted(3, 5)), (b"", Counted()), (b'"usage":null', Counted()),
        (b'"usage": {"prompt_tokens": true, "completion_tokens": -1}', Counted()), (b'"usage":{"prompt', Counted()),
        (b'{"usage":{"prompt_tokens":1}} and "usage":{"completion', Counted(1)), (b'"usage":{"a":\xff', Counted()),
    ],
    ids=["openai", "anthropic", "nothing", "null", "no counts", "cut", "the last whole one", "no text"],
)  # fmt: skip
def test_the_last_usage_is_read(tail: bytes, counted: Counted) -> None:
    assert read_counted(b"", tail) == counted


def test_the_model_is_the_one_the_reply_names_and_not_one_that_its_text_speaks_of() -> None:
    said = json.dumps({"model": "real", "choices": [{"message": {"content": 'write {"model": "other"}'}}]})
    assert read_models(said.encode()) == ("real",)
    assert read_models(b'"model":"a/b\\"c"') == ('a/b"c',)
    assert read_models(b"nothing") == ()
    assert read_models(rb'"model":"\ud8"') == ()


@given(st.binary(max_size=300))
def test_nothing_that_an_engine_sends_breaks_the_reading(tail: bytes) -> None:
    read_counted(tail + b'"message_start"', tail + b'"usage":' + tail)
    read_models(b'"model":"' + tail)


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_text_beside_the_model_leaves_it_alone(model: str, text: str) -> None:
    said = json.dumps({"model": model, "content": text, "choices": [json.dumps({"model": text})]})
    assert read_models(said.encode()) == (model,)
