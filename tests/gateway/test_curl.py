"""The real curl against the gateway, with the demo model on the real llama.cpp."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest

from engine_metrics import cut_short, requests_running
from home import Home

pytestmark = pytest.mark.elsewhere(bool(shutil.which("curl")), "curl")
CHAT = {"model": "stoker-demo", "messages": [{"role": "user", "content": "Who are you?"}], "max_tokens": 8, "temperature": 0}


def curl(home: Home, path: str, *words: str, body: object = None) -> Any:
    """Runs curl and returns what it printed, as JSON where it is."""
    said = subprocess.run(
        _argv(home, path, *words, body=body), capture_output=True, text=True, timeout=60, check=True
    ).stdout
    return json.loads(said) if said.startswith("{") else said


def _argv(home: Home, path: str, *words: str, body: object) -> list[str]:
    sent = () if body is None else ("-d", json.dumps(body))
    return ["curl", "-sS", *words, "-H", f"authorization: Bearer {home.daemon.key}", *sent, home.daemon.url + path]


@pytest.mark.parametrize(
    "words", [(), ("--http1.0",), ("--http2",), ("-H", "expect: 100-continue"), ("-H", "transfer-encoding: chunked")]
)
def test_a_chat_is_answered_however_it_is_sent(demo: Home, words: tuple[str, ...]) -> None:
    assert curl(demo, "/v1/chat/completions", *words, body=CHAT)["model"] == "stoker-demo"


def test_a_chat_is_answered_by_what_curl_takes_for_a_proxy(demo: Home) -> None:
    words = ("-x", demo.daemon.url, "--noproxy", "")  # it sends the whole address as the request's target then
    assert curl(demo, "/v1/chat/completions", *words, body=CHAT)["model"] == "stoker-demo"


def test_a_stream_ends_with_its_last_word(demo: Home) -> None:
    assert curl(demo, "/v1/chat/completions", "-N", body={**CHAT, "stream": True}).rstrip().endswith("data: [DONE]")


def test_models_are_listed_and_their_head_has_no_body(demo: Home) -> None:
    assert [model["id"] for model in curl(demo, "/v1/models")["data"]] == ["stoker-demo"]
    assert curl(demo, "/v1/models", "-I").splitlines()[0] == "HTTP/1.1 200 OK"


def test_text_becomes_tokens_and_text_again(demo: Home) -> None:
    tokens = curl(demo, "/tokenize", body={"model": "stoker-demo", "content": "hello"})["tokens"]
    assert curl(demo, "/detokenize", body={"model": "stoker-demo", "tokens": tokens})["content"].strip() == "hello"


@pytest.mark.parametrize("path", ["/tokenize", "/v1/messages", "/v1/responses", "/v1/rerank"])
def test_a_body_that_names_no_model_is_answered_by_none_even_where_only_one_runs(demo: Home, path: str) -> None:
    assert curl(demo, path, body={"content": "hello"})["error"]["code"] == "invalid_model"


def test_curl_that_is_ended_in_the_middle_ends_its_request_at_the_engine(demo: Home) -> None:
    body = {**CHAT, "stream": True, "max_tokens": 100_000, "ignore_eos": True}
    argv = _argv(demo, "/v1/chat/completions", "-N", body=body)
    with cut_short(demo, "demo"), subprocess.Popen(argv, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stdout.readline().startswith(b"data: ")
        assert requests_running(demo, "demo") == 1
        running.kill()
