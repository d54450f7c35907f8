"""Clients that wait for a service's start: the real daemon and `openai` client, scripted engines and the demo model."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

import openai
import pytest

from home import Home, wait_for
from stoker.config import demo_model
from stoker.records import State

GATEWAY = "port = 0\nwait_comment_s = 0.1"
ASKED = "on_demand = true\n"
HELLO: Any = [{"role": "user", "content": "hi"}]
NO_WAIT, SHORT_WAIT = {"x-stoker-wait": "0"}, {"x-stoker-wait": "0.5"}


@pytest.fixture
def waiting(home: Home) -> Home:
    """A Stoker with a service that loads until `gate` exists, and one that is up."""
    home.configure(gateway=GATEWAY)
    home.add_fake("first")
    home.add_fake("small", ASKED, gate=str(home.folder / "gate"))
    home.run("up", "first")
    return home


@contextmanager
def client_of(home: Home) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{home.daemon.url}/v1", api_key=home.daemon.key, max_retries=0) as client:
        yield client


def metrics(home: Home) -> bytes:
    address, key = home.daemon.url.removeprefix("http://"), home.daemon.key
    with closing(http.client.HTTPConnection(address, timeout=30)) as connection:
        connection.request("GET", "/metrics", None, {"authorization": f"Bearer {key}"})
        return connection.getresponse().read()


def used(home: Home, model: str, requests: int) -> Any:
    """What `stoker usage` knows of a model, once so many requests are in it."""

    def look() -> Any:
        lines = {line["name"]: line for line in home.json("usage", "--by", "model")["lines"]}
        return lines[model] if model in lines and lines[model]["requests"] == requests else None

    return wait_for("the records", look)


def open_gate_when_loading(home: Home) -> None:
    home.await_state("first", State.READY)
    wait_for("the start", lambda: any(view.name == "small" for view in home.daemon.status().services))
    home.await_state("small", State.LOADING)
    (home.folder / "gate").touch()


def test_a_stream_gets_comments_and_then_its_tokens(waiting: Home) -> None:
    body = {"model": "small", "stream": True, "messages": HELLO}
    lines = waiting.daemon.stream("POST", "/v1/chat/completions", body)
    assert next(lines).startswith(b": small is ")
    (waiting.folder / "gate").touch()
    rest = [line for line in lines if line.strip() and not line.startswith(b":")]
    assert rest[-1].strip() == b"data: [DONE]"
    assert [json.loads(line[6:])["choices"][0]["delta"]["content"] for line in rest[:-1]] == [
        "token0 ",
        "token1 ",
        "token2 ",
    ]


def test_openais_client_streams_as_if_nothing_had_been(waiting: Home) -> None:
    with client_of(waiting) as client, ThreadPoolExecutor(1) as threads:
        opened = threads.submit(open_gate_when_loading, waiting)
        stream = client.chat.completions.create(model="small", messages=HELLO, stream=True)
        said = [chunk.choices[0].delta.content for chunk in stream]
        opened.result()
    assert said == ["token0 ", "token1 ", "token2 "]


def test_openais_client_gets_the_failure_as_an_error(home: Home) -> None:
    home.configure(gateway=GATEWAY)
    home.add_fake("first")
    home.add_fake("broken", ASKED, dies="proving", gate=str(home.folder / "gate"))
    home.run("up", "first")
    with client_of(home) as client:
        stream = client.chat.completions.create(model="broken", messages=HELLO, stream=True)
        (home.folder / "gate").touch()
        with pytest.raises(openai.APIError, match="`broken` is not started"):
            list(stream)


def test_who_does_not_wait_or_only_shortly_is_told_while_the_start_goes_on(waiting: Home) -> None:
    with client_of(waiting) as client:
        for headers in (NO_WAIT, SHORT_WAIT):
            with pytest.raises(openai.InternalServerError) as caught:
                client.chat.completions.create(model="small", messages=HELLO, extra_headers=headers)
            assert caught.value.status_code == 503
            assert int(caught.value.response.headers["retry-after"]) > 0
        (waiting.folder / "gate").touch()
        waiting.await_state("small", State.READY)
        stream = client.chat.completions.create(model="small", messages=HELLO, extra_headers=NO_WAIT, stream=True)
        assert len(list(stream)) == 3


def test_a_client_that_leaves_while_it_waits_leaves_the_start_to_others(waiting: Home) -> None:
    with client_of(waiting) as client:
        with pytest.raises(openai.APITimeoutError):
            client.with_options(timeout=1.0).chat.completions.create(model="small", messages=HELLO)
        (waiting.folder / "gate").touch()
        waiting.await_state("small", State.READY)
    assert used(waiting, "small", 1)["failed"] == 1


def test_the_demo_model_is_waited_for_and_what_it_counted_is_noted(home: Home) -> None:
    home.configure(
        f'[service.demo]\nmodel = "{demo_model()}"\nserved_name = "org/demo:tag"\n{ASKED}\n[alias]\nfast = "demo"\n',
        gateway=GATEWAY,
    )
    home.add_fake("first")
    home.run("up", "first")
    with client_of(home) as client:
        whole = client.chat.completions.create(model="fast", messages=HELLO, max_tokens=8)
        assert whole.model == "org/demo:tag"
        options: Any = {"stream": True, "stream_options": {"include_usage": True}, "max_tokens": 8}
        chunks = list(client.chat.completions.create(model="org/demo:tag", messages=HELLO, **options))
    counted = [whole.usage, chunks[-1].usage]
    line = used(home, "org/demo:tag", 2)
    assert line["prompt_tokens"] == sum(usage.prompt_tokens for usage in counted if usage)
    assert line["completion_tokens"] == sum(usage.completion_tokens for usage in counted if usage)
    assert line["ttft_mean_s"] > 0
    assert b"stoker_gateway_substituted_answers_total 0.0" in metrics(home)
