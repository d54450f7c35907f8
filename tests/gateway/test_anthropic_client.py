"""The real `anthropic` Python client against the gateway, with the demo model on the real llama.cpp."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import pytest
from anthropic.types import MessageParam, ToolParam

from home import Home, wait_for

MODEL = "stoker-demo"
HELLO: list[MessageParam] = [{"role": "user", "content": "Who are you?"}]
SUM: list[MessageParam] = [{"role": "user", "content": "What is 3 + 4?"}]
COLD = {"temperature": 0}
WEATHER: ToolParam = {
    "name": "get_weather",
    "description": "Get the current weather of a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


@pytest.fixture
def client(demo: Home) -> Iterator[anthropic.Anthropic]:
    """A client with the gateway's key; it never repeats a request."""
    daemon = demo.daemon
    with anthropic.Anthropic(base_url=daemon.url, api_key=daemon.key, max_retries=0) as client:
        yield client


def test_models_are_listed(client: anthropic.Anthropic) -> None:
    [model] = client.models.list().data
    assert (model.id, model.type) == (MODEL, "model")


def test_a_message_is_answered_by_the_model_it_names(client: anthropic.Anthropic) -> None:
    raw = client.messages.with_raw_response.create(model=MODEL, messages=HELLO, max_tokens=40, extra_body=COLD)
    answer = raw.parse()
    assert answer.model == MODEL
    assert [block.type for block in answer.content] == ["text"]
    assert answer.usage.output_tokens > 0
    assert raw.headers["x-stoker-service"] == "demo"


def test_a_stream_makes_up_the_whole_answer(client: anthropic.Anthropic) -> None:
    whole = client.messages.create(model=MODEL, messages=HELLO, max_tokens=40, extra_body=COLD)
    with client.messages.stream(model=MODEL, messages=HELLO, max_tokens=40, extra_body=COLD) as stream:
        pieces = list(stream.text_stream)
    assert len(pieces) > 1
    assert "".join(pieces) == "".join(block.text for block in whole.content if block.type == "text")


def test_a_tool_is_used_with_input_that_fits_its_schema(client: anthropic.Anthropic) -> None:
    question: list[MessageParam] = [{"role": "user", "content": "What is the weather in Lisbon?"}]
    answer = client.messages.create(model=MODEL, messages=question, max_tokens=128, tools=[WEATHER], extra_body=COLD)
    [use] = [block for block in answer.content if block.type == "tool_use"]
    assert (use.name, use.input) == ("get_weather", {"city": "Lisbon"})
    assert answer.stop_reason == "tool_use"


def test_the_model_thinks_when_asked_and_not_otherwise(client: anthropic.Anthropic) -> None:
    wish = {**COLD, "chat_template_kwargs": {"enable_thinking": True}}
    plain = client.messages.create(model=MODEL, messages=SUM, max_tokens=200, extra_body=COLD)
    thinking = client.messages.create(model=MODEL, messages=SUM, max_tokens=200, extra_body=wish)
    assert "thinking" not in [block.type for block in plain.content]
    assert "thinking" in [block.type for block in thinking.content]


def test_tokens_are_counted_by_the_engine(client: anthropic.Anthropic) -> None:
    assert client.messages.count_tokens(model=MODEL, messages=HELLO).input_tokens > 3


def test_the_engines_own_refusal_passes_through(client: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.BadRequestError, match="exceeds the available context size") as caught:
        client.messages.create(model=MODEL, messages=[{"role": "user", "content": "word " * 6000}], max_tokens=5)
    assert caught.value.response.headers["x-stoker-model"] == MODEL


def test_an_unknown_model_is_refused_in_anthropics_shape(client: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.NotFoundError) as caught:
        client.messages.create(model="other", messages=HELLO, max_tokens=5)
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["type"] == "error"
    assert caught.value.body["error"]["type"] == "not_found_error"
    assert "no other answers in its place" in caught.value.body["error"]["message"]


def test_an_engine_that_dies_mid_stream_is_an_error_and_no_end(home: Home) -> None:
    gate = home.folder / "gate"
    home.add_fake("mortal", dies="streaming", stream_gate=str(gate))
    home.run("up", "mortal")
    daemon = home.daemon
    with anthropic.Anthropic(base_url=daemon.url, auth_token=daemon.key, api_key=None, max_retries=0) as client:
        stream = client.messages.create(model="mortal", messages=HELLO, max_tokens=9, stream=True)
        gate.touch()
        with pytest.raises(anthropic.APIStatusError, match="broke the connection before its reply was whole") as caught:
            list(stream)
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["error"]["type"] == "api_error"


def test_what_the_engine_counted_is_noted_for_whole_messages_and_streams(demo: Home) -> None:
    key = demo.json("keys", "add", "anthropic-test")["key"]

    def noted() -> dict[str, Any] | None:
        lines: list[dict[str, Any]] = demo.json("usage", "--by", "key")["lines"]
        return next((line for line in lines if line["name"] == "anthropic-test" and line["requests"] == 2), None)

    with anthropic.Anthropic(base_url=demo.daemon.url, api_key=key, max_retries=0) as client:
        whole = client.messages.create(model=MODEL, messages=HELLO, max_tokens=8).usage
        with client.messages.stream(model=MODEL, messages=HELLO, max_tokens=8) as stream:
            streamed = stream.get_final_message().usage
    line = wait_for("the records", noted)
    assert line["counted"] == 2
    assert line["prompt_tokens"] == whole.input_tokens + streamed.input_tokens
    assert line["completion_tokens"] == whole.output_tokens + streamed.output_tokens
