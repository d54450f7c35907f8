"""What each real client makes of a refusal: a wrong key, a model that is not there, a service that was stopped."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from typing import NamedTuple

import anthropic
import openai
import pytest
from mistralai.client import Mistral
from mistralai.client.errors import SDKError

from home import Home


class Told(NamedTuple):
    """What a client tells its user of a refusal."""

    status: int
    text: str


def ask_openai(url: str, key: str, model: str) -> Told:
    with (
        openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0) as client,
        pytest.raises(openai.APIStatusError) as caught,
    ):
        client.chat.completions.create(model=model, messages=[{"role": "user", "content": "hi"}])
    return Told(caught.value.status_code, str(caught.value))


def ask_openai_to_respond(url: str, key: str, model: str) -> Told:
    with (
        openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0) as client,
        pytest.raises(openai.APIStatusError) as caught,
    ):
        client.responses.create(model=model, input="hi")
    return Told(caught.value.status_code, str(caught.value))


def ask_anthropic(url: str, key: str, model: str) -> Told:
    with (
        anthropic.Anthropic(base_url=url, auth_token=key, api_key=None, max_retries=0) as client,
        pytest.raises(anthropic.APIStatusError) as caught,
    ):
        client.messages.create(model=model, messages=[{"role": "user", "content": "hi"}], max_tokens=9)
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["type"] == "error"
    return Told(caught.value.status_code, str(caught.value))


def ask_mistral(url: str, key: str, model: str) -> Told:
    with Mistral(api_key=key, server_url=url) as client, pytest.raises(SDKError) as caught:
        client.chat.complete(model=model, messages=[{"role": "user", "content": "hi"}])
    return Told(caught.value.status_code, str(caught.value))


def ask_curl(url: str, key: str, model: str) -> Told:
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "hi"}]})
    words = ("-sS", "-w", "\n%{http_code}", "-H", f"authorization: Bearer {key}", "-d", body, f"{url}/v1/chat/completions")
    said = subprocess.run(["curl", *words], capture_output=True, text=True, timeout=60, check=True).stdout
    text, _, status = said.rpartition("\n")
    return Told(int(status), text)


CLIENTS = {
    "openai": ask_openai, "openai responses": ask_openai_to_respond, "anthropic": ask_anthropic, "mistralai": ask_mistral,
    "curl": ask_curl,
}  # fmt: skip
each_client = pytest.mark.parametrize("ask", CLIENTS.values(), ids=CLIENTS)
Ask = Callable[[str, str, str], Told]


@pytest.fixture(scope="module")
def resting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A Stoker whose only service was stopped."""
    home = Home(tmp_path_factory.mktemp("resting"))
    home.add_fake("still")
    home.run("up", "still")
    home.daemon.down("still")
    yield home
    assert home.end() == {}


@each_client
def test_a_wrong_key(resting: Home, ask: Ask) -> None:
    told = ask(resting.daemon.url, "sk-wrong", "still")
    assert told.status == 401
    assert "The key is wrong" in told.text


@each_client
def test_a_model_that_is_not_there(resting: Home, ask: Ask) -> None:
    told = ask(resting.daemon.url, resting.daemon.key, "gpt-4o")
    assert told.status == 404
    assert "There is no model `gpt-4o` here" in told.text


@each_client
def test_a_service_that_was_stopped(resting: Home, ask: Ask) -> None:
    told = ask(resting.daemon.url, resting.daemon.key, "still")
    assert told.status == 503
    assert "`still` is not ready" in told.text
