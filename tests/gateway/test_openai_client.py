"""The real `openai` Python client against the gateway, with the demo model on the real llama.cpp."""

from __future__ import annotations

import json
from collections.abc import Iterator

import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam

from engine_metrics import cut_short, requests_running
from home import Home

MODEL = "stoker-demo"
HELLO: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Who are you?"}]
WEATHER: ChatCompletionToolParam = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the current weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


@pytest.fixture
def client(demo: Home) -> Iterator[openai.OpenAI]:
    """A client with the gateway's key; it never repeats a request."""
    with openai.OpenAI(base_url=f"{demo.daemon.url}/v1", api_key=demo.daemon.key, max_retries=0) as client:
        yield client


def test_models_are_listed_with_their_state(client: openai.OpenAI) -> None:
    [model] = client.models.list().data
    assert model.id == MODEL
    assert model.model_extra is not None
    assert model.model_extra["state"] == "READY"
    assert model.model_extra["context_tokens"] == 4096
    assert model.model_extra["capabilities"] == {
        "chat": True, "embeddings": False, "rerank": False, "audio": None, "vision": False, "tools": True,
        "reasoning": True, "structured_output": True,
    }  # fmt: skip


def test_a_chat_is_answered_by_the_model_it_names(client: openai.OpenAI) -> None:
    raw = client.chat.completions.with_raw_response.create(model=MODEL, messages=HELLO, max_tokens=16, temperature=0)
    answer = raw.parse()
    assert answer.model == MODEL
    assert answer.choices[0].message.content
    assert answer.usage is not None
    assert answer.usage.completion_tokens > 0
    assert raw.headers["x-stoker-service"] == "demo"
    assert raw.headers["x-stoker-model"] == MODEL
    assert len(raw.headers["x-stoker-revision"]) == 12
    assert len(raw.headers["x-stoker-plan"]) == 12


def test_a_stream_comes_in_pieces_that_make_up_the_whole_answer(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(model=MODEL, messages=HELLO, max_tokens=16, temperature=0)
    pieces = [
        chunk.choices[0].delta.content
        for chunk in client.chat.completions.create(model=MODEL, messages=HELLO, max_tokens=16, temperature=0, stream=True)
        if chunk.choices and chunk.choices[0].delta.content
    ]
    assert len(pieces) > 1
    assert "".join(pieces) == whole.choices[0].message.content


def test_a_tool_is_called_with_arguments_that_fit_its_schema(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model=MODEL, temperature=0, max_tokens=128, tools=[WEATHER], tool_choice="auto",
        messages=[{"role": "user", "content": "What is the weather in Lisbon?"}],
    )  # fmt: skip
    [call] = answer.choices[0].message.tool_calls or []
    assert call.type == "function"
    assert call.function.name == "get_weather"
    assert json.loads(call.function.arguments) == {"city": "Lisbon"}
    assert answer.choices[0].finish_reason == "tool_calls"


def test_a_streamed_tool_call_is_the_same_as_a_whole_one(client: openai.OpenAI) -> None:
    chunks = client.chat.completions.create(
        model=MODEL, temperature=0, max_tokens=128, tools=[WEATHER], tool_choice="auto", stream=True,
        messages=[{"role": "user", "content": "What is the weather in Lisbon?"}],
    )  # fmt: skip
    calls = [call for chunk in chunks for choice in chunk.choices for call in choice.delta.tool_calls or []]
    arguments = "".join((call.function.arguments or "") for call in calls if call.function)
    assert json.loads(arguments) == {"city": "Lisbon"}


def test_logprobs_are_passed_through(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model=MODEL, messages=HELLO, max_tokens=4, temperature=0, logprobs=True, top_logprobs=2
    )
    logprobs = answer.choices[0].logprobs
    assert logprobs is not None
    assert logprobs.content is not None
    assert len(logprobs.content) == 4
    assert all(token.logprob <= 0 and len(token.top_logprobs) == 2 for token in logprobs.content)


def test_the_model_thinks_when_asked_and_not_otherwise(client: openai.OpenAI) -> None:
    question: list[ChatCompletionMessageParam] = [{"role": "user", "content": "What is 3 + 4?"}]
    plain = client.chat.completions.create(model=MODEL, messages=question, max_tokens=200, temperature=0)
    thinking = client.chat.completions.create(
        model=MODEL, messages=question, max_tokens=200, temperature=0,
        extra_body={"chat_template_kwargs": {"enable_thinking": True}},
    )  # fmt: skip
    assert not (plain.choices[0].message.model_extra or {}).get("reasoning_content")
    assert (thinking.choices[0].message.model_extra or {}).get("reasoning_content")


def test_plain_completions_work(client: openai.OpenAI) -> None:
    answer = client.completions.create(model=MODEL, prompt="def add(a, b):\n    return", max_tokens=6, temperature=0)
    assert answer.choices[0].text


def test_embeddings_of_an_engine_that_has_none_are_refused_by_the_engine_itself(client: openai.OpenAI) -> None:
    with pytest.raises(openai.APIStatusError) as caught:
        client.embeddings.create(model=MODEL, input="hello")
    assert caught.value.status_code == 501
    assert caught.value.response.headers["x-stoker-service"] == "demo"


def test_an_unknown_model_is_refused_with_the_names_that_exist(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        client.chat.completions.create(model="gpt-4o", messages=HELLO)
    assert caught.value.code == "model_not_found"
    assert caught.value.param == "model"
    assert "no other answers in its place" in caught.value.message
    assert f"`{MODEL}`" in caught.value.message


def test_a_wrong_key_is_refused(demo: Home) -> None:
    client = openai.OpenAI(base_url=f"{demo.daemon.url}/v1", api_key="sk-wrong", max_retries=0)
    with client, pytest.raises(openai.AuthenticationError) as caught:
        client.chat.completions.create(model=MODEL, messages=HELLO)
    assert caught.value.code == "invalid_api_key"


def test_the_engines_own_refusal_passes_through_unchanged(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "word " * 6000}])
    assert "exceeds" in caught.value.message
    assert caught.value.response.headers["x-stoker-model"] == MODEL


def test_a_client_that_leaves_a_stream_ends_its_request_at_the_engine(demo: Home, client: openai.OpenAI) -> None:
    with cut_short(demo, "demo"):
        stream = client.chat.completions.create(
            model=MODEL, messages=HELLO, stream=True, max_tokens=100_000, extra_body={"ignore_eos": True}
        )
        next(iter(stream))
        assert requests_running(demo, "demo") == 1
        stream.close()
