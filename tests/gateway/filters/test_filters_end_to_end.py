"""Filters from `stoker.toml` to the client, with the demo model on the real llama.cpp."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest

from home import Home
from stoker.config import demo_model
from stoker.flows.planning import make_plan
from stoker.gateway.filters import names
from stoker.records import Wish

FILTERS = '["merge-turns", "cap-tokens=200", "reasoning-effort=none,low:high", "reasoning-field=both", "reasoning-tokens"]'
THINKING: dict[str, Any] = {"extra_body": {"chat_template_kwargs": {"enable_thinking": True}}, "temperature": 0}
QUESTION: Any = [{"role": "user", "content": "What is"}, {"role": "user", "content": "3 + 4?"}]


@pytest.fixture(scope="module")
def thinker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A Stoker that serves the demo model with all filters."""
    home = Home(tmp_path_factory.mktemp("thinker"))
    home.configure(f'[service.thinker]\nmodel = "{demo_model()}"\nfilters = {FILTERS}\n')
    home.run("up", "thinker")
    yield home
    assert home.end() == {}


@pytest.fixture
def client(thinker: Home) -> Iterator[openai.OpenAI]:
    """A client with the gateway's key; it never repeats a request."""
    with openai.OpenAI(base_url=f"{thinker.daemon.url}/v1", api_key=thinker.daemon.key, max_retries=0) as client:
        yield client


def test_a_reply_names_the_filters_and_has_the_thinking_under_both_names_and_counted(client: openai.OpenAI) -> None:
    raw = client.chat.completions.with_raw_response.create(model="thinker", messages=QUESTION, **THINKING)
    assert raw.headers["x-stoker-filters"] == (
        "merge-turns, cap-tokens, reasoning-effort, reasoning-field, reasoning-tokens"
    )
    answer = raw.parse()
    more = answer.choices[0].message.model_extra or {}
    assert more["reasoning"] == more["reasoning_content"] != ""
    assert answer.usage is not None
    assert answer.usage.completion_tokens_details is not None
    counted = answer.usage.completion_tokens_details.reasoning_tokens
    assert counted is not None
    assert 0 < counted < answer.usage.completion_tokens <= 200


def test_a_stream_has_what_the_whole_reply_has(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(model="thinker", messages=QUESTION, **THINKING)
    chunks = list(
        client.chat.completions.create(
            model="thinker", messages=QUESTION, stream=True, stream_options={"include_usage": True}, **THINKING
        )
    )
    deltas = [choice.delta for chunk in chunks for choice in chunk.choices]
    more = whole.choices[0].message.model_extra or {}
    assert "".join(delta.content or "" for delta in deltas) == whole.choices[0].message.content
    for name in ("reasoning", "reasoning_content"):
        assert "".join((delta.model_extra or {}).get(name) or "" for delta in deltas) == more[name]
    assert chunks[-1].usage is not None
    assert whole.usage is not None
    assert chunks[-1].usage.completion_tokens_details == whole.usage.completion_tokens_details


def test_turns_are_merged_and_tokens_capped_before_the_engine_sees_them(client: openai.OpenAI) -> None:
    merged: Any = [{"role": "user", "content": "What is\n\n3 + 4?"}]
    two, one = (
        client.chat.completions.create(model="thinker", messages=messages, temperature=0, max_tokens=9000)
        for messages in (QUESTION, merged)
    )
    assert two.usage is not None
    assert one.usage is not None
    assert two.usage.prompt_tokens == one.usage.prompt_tokens
    assert two.choices[0].message.content == one.choices[0].message.content
    endless = client.completions.create(model="thinker", prompt="1, 2, 3,", max_tokens=3000, extra_body={"ignore_eos": True})
    assert endless.usage is not None
    assert endless.usage.completion_tokens == 200


def test_an_effort_that_the_model_does_not_know_is_refused_in_openais_shape(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="thinker", messages=QUESTION, reasoning_effort="xhigh")
    assert (caught.value.code, caught.value.param) == ("reasoning_effort_unknown", "reasoning_effort")
    assert "It understands: `high`, `low`, `none`." in caught.value.message


def test_a_service_without_filters_says_none(demo: Home) -> None:
    with openai.OpenAI(base_url=f"{demo.daemon.url}/v1", api_key=demo.daemon.key, max_retries=0) as client:
        raw = client.chat.completions.with_raw_response.create(model="stoker-demo", messages=QUESTION, max_tokens=2)
    assert "x-stoker-filters" not in raw.headers


def test_filters_are_no_part_of_the_plan() -> None:
    wish = Wish("a", str(demo_model()))
    assert make_plan(wish) == make_plan(Wish("a", str(demo_model()), filters=("merge-turns",)))


def test_a_filter_that_does_not_exist_is_an_error_before_anything_starts(home: Home) -> None:
    home.configure(f'[service.a]\nmodel = "{demo_model()}"\nfilters = ["cap-token=5"]\n')
    said = home.run("up", "a", code=2).stderr
    assert "`service.a.filters`: there is no filter called `cap-token`" in said
    assert "did you mean `cap-tokens`?" in said


def test_rules_lists_the_filters(home: Home) -> None:
    assert [one["name"] for one in home.json("rules", "--filters")] == names()
    assert home.json("rules", "--filters", "cap-tokens")[0]["example"] == "cap-tokens=4096"
    shown = home.run("rules", "--filters").stdout
    assert all(name in shown for name in names())
    assert "did you mean `cap-tokens`?" in home.run("rules", "--filters", "cap-token", code=2).stderr
    assert "neither --search" in home.run("rules", "--filters", "--search", "x", code=2).stderr
