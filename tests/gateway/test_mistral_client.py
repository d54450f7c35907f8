"""The real `mistralai` Python client against the gateway, with the demo model on the real llama.cpp."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from mistralai.client import Mistral

from engine_metrics import cut_short, requests_running
from home import Home

MODEL = "stoker-demo"
HELLO: Any = [{"role": "user", "content": "Who are you?"}]
WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the current weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
# The client offers no way to ignore an answer's end; this answer fills the context.
LONG: Any = {"type": "json_schema", "json_schema": {"name": "long", "schema_definition": {"const": "I am Stoker. " * 4000}}}


@pytest.fixture
def client(demo: Home) -> Iterator[Mistral]:
    """A client with the gateway's key."""
    with Mistral(api_key=demo.daemon.key, server_url=demo.daemon.url) as client:
        yield client


def test_models_are_listed(client: Mistral) -> None:
    [model] = client.models.list().data or []
    assert model.model_dump()["raw"]["id"] == MODEL


def test_a_chat_is_answered_by_the_model_it_names(client: Mistral) -> None:
    answer = client.chat.complete(model=MODEL, messages=HELLO, max_tokens=16, temperature=0)
    assert answer.model == MODEL
    assert answer.usage.completion_tokens
    assert answer.choices[0].message
    assert answer.choices[0].message.content


def test_a_stream_makes_up_the_whole_answer(client: Mistral) -> None:
    whole = client.chat.complete(model=MODEL, messages=HELLO, max_tokens=16, temperature=0)
    with client.chat.stream(model=MODEL, messages=HELLO, max_tokens=16, temperature=0) as events:
        pieces = [choice.delta.content for event in events for choice in event.data.choices]
    texts = [piece for piece in pieces if isinstance(piece, str)]
    assert len(texts) > 1
    assert whole.choices[0].message
    assert "".join(texts) == whole.choices[0].message.content


def test_a_tool_is_called_with_arguments_that_fit_its_schema(client: Mistral) -> None:
    question: Any = [{"role": "user", "content": "What is the weather in Lisbon?"}]
    answer = client.chat.complete(model=MODEL, messages=question, tools=[WEATHER], max_tokens=128, temperature=0)
    assert answer.choices[0].message
    [call] = answer.choices[0].message.tool_calls or []
    assert call.function.name == "get_weather"
    assert json.loads(str(call.function.arguments)) == {"city": "Lisbon"}


def test_a_client_that_leaves_a_stream_ends_its_request_at_the_engine(demo: Home, client: Mistral) -> None:
    endless = client.chat.stream(model=MODEL, messages=HELLO, response_format=LONG, temperature=0)
    with cut_short(demo, "demo"), endless as events:
        next(iter(events))
        assert requests_running(demo, "demo") == 1
