"""Clients whose base URL lacks `/v1`, or has it twice: they are told so, and not that their key is wrong."""

from __future__ import annotations

import openai
import pytest
from mistralai.client import Mistral
from mistralai.client.errors import SDKError

from door_stage import Engine, Stage, json_answer, run
from gateway_client import Answer
from home import Home

ENDS_IN, ENDS_BEFORE = "base URL has to end in /v1.", "base URL has to end before it."


def ask(method: bytes, target: bytes, key: bytes = b"key") -> Answer:
    answers: list[Answer] = []

    async def story(stage: Stage) -> None:
        answers.append(await (await stage.request(method, target, body=b'{"model": "m"}', key=key)).read_answer())

    assert run(Engine(json_answer(b"{}")), story).asked == []
    return answers[0]


@pytest.mark.parametrize(
    ("target", "known", "advice"),
    [
        (b"/chat/completions", "/v1/chat/completions", ENDS_IN),
        (b"/completions", "/v1/completions", ENDS_IN),
        (b"/messages/count_tokens?beta=true", "/v1/messages/count_tokens", ENDS_IN),
        (b"/v1/v1/chat/completions", "/v1/chat/completions", ENDS_BEFORE),
        (b"/v1/tokenize", "/tokenize", ENDS_BEFORE),
        (b"//v1/chat/completions", "/v1/chat/completions", "is."),
        (b"/v1/chat/completions/", "/v1/chat/completions", "is."),
        (b"/openai/v1/embeddings", "/v1/embeddings", "is."),
    ],
)
def test_a_path_that_is_nearly_one_of_ours_names_it(target: bytes, known: str, advice: str) -> None:
    answer = ask(b"POST", target)
    assert (answer.status, answer.code) == (404, "unknown_path")
    message = answer.json()["error"]["message"]
    assert f" here, but {known} is" in message
    assert message.endswith(advice)


def test_the_list_of_models_is_found_too() -> None:
    assert "/v1/models is" in ask(b"GET", b"/models").json()["error"]["message"]


@pytest.mark.parametrize("target", [b"/v1", b"/v1/", b"/v1/nothing", b"/v1/completions2"])
def test_what_is_like_nothing_gets_no_advice(target: bytes) -> None:
    assert ask(b"GET", target).json()["error"]["message"] == f"There is no {target.decode()} here."


@pytest.mark.parametrize("target", [b"/chat/completions", b"/models", b"/v1"])
def test_nobody_is_told_without_a_key(target: bytes) -> None:
    answer = ask(b"POST", target, key=b"wrong")
    assert (answer.status, answer.code) == (401, "invalid_api_key")


@pytest.mark.parametrize("target", [b"/api/status", b"/api/models", b"/api/tags", b"/props"])
def test_a_good_key_at_the_control_apis_paths_is_not_called_wrong(target: bytes) -> None:
    answer = ask(b"GET", target)
    assert answer.status == 401
    assert "`owner` is good" in answer.json()["error"]["message"]
    assert "Models are at /v1" in answer.json()["error"]["message"]


def test_openais_client_reads_what_its_base_url_lacks(demo: Home) -> None:
    daemon = demo.daemon
    with (
        openai.OpenAI(base_url=daemon.url, api_key=daemon.key, max_retries=0) as client,
        pytest.raises(openai.NotFoundError, match=ENDS_IN),
    ):
        client.chat.completions.create(model="stoker-demo", messages=[{"role": "user", "content": "hi"}])


def test_mistrals_client_reads_what_its_server_url_has_too_much(demo: Home) -> None:
    daemon = demo.daemon
    with (
        Mistral(api_key=daemon.key, server_url=f"{daemon.url}/v1") as client,
        pytest.raises(SDKError, match=ENDS_BEFORE),
    ):
        client.chat.complete(model="stoker-demo", messages=[{"role": "user", "content": "hi"}])
