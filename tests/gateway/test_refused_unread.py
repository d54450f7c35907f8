"""Requests that are refused before they are whole: the shape of the error is that of the path, where one was read."""

from __future__ import annotations

import asyncio

import anthropic
import pytest

from door_stage import until
from gateway_client import BODY_LIMIT_BYTES, LONG_S, Answer, Server, get, post, run
from home import Home

SHORT_S = 0.1
LARGE_HEADER = b"x: " + b"a" * 70_000
TOO_LONG = b"content-length: %d" % (BODY_LIMIT_BYTES + 1)
UNREADABLE = {
    "too large": (413, "request_too_large", TOO_LONG + b"\r\n\r\n"),
    "large head": (431, "invalid_request_error", LARGE_HEADER + b"\r\n\r\n"),
    "large head that does not end": (431, "invalid_request_error", LARGE_HEADER + b"a" * 300_000),
    "two lengths": (400, "invalid_request_error", b"content-length: 1\r\ncontent-length: 2\r\n\r\n"),
    "another encoding": (400, "invalid_request_error", b"transfer-encoding: gzip\r\n\r\n"),
}
each_way = pytest.mark.parametrize(("status", "kind", "rest"), UNREADABLE.values(), ids=UNREADABLE)


def ask(*sent: bytes, before: int = 0) -> Answer:
    """Returns the last answer to what a client sends."""
    answers: list[Answer] = []

    async def story(server: Server) -> None:
        client = await server.connect()
        client.send(*sent)
        answers.extend([await client.read_answer() for _ in range(before + 1)])

    run(story)
    return answers[-1]


@each_way
@pytest.mark.parametrize(
    "target", [b"/v1/messages", b"/v1/messages?beta=true", b"/service/a/v1/messages", b"http://127.0.0.1/v1/messages"]
)
def test_anthropics_paths_get_anthropics_shape(target: bytes, status: int, kind: str, rest: bytes) -> None:
    answer = ask(b"POST %s HTTP/1.1\r\nhost: x\r\n" % target, rest)
    assert (answer.status, answer.json()["type"], answer.json()["error"]["type"]) == (status, "error", kind)
    assert answer.json()["error"]["src"] == "stoker"


@each_way
def test_other_paths_get_openais_shape(status: int, kind: str, rest: bytes) -> None:
    answer = ask(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n", rest)
    assert (answer.status, list(answer.json())) == (status, ["error"])
    assert answer.json()["error"]["type"] == "invalid_request_error"


@each_way
def test_each_request_of_a_connection_has_its_own_shape(status: int, kind: str, rest: bytes) -> None:
    answer = ask(post(b"x", path=b"/v1/messages"), b"POST /v1/responses HTTP/1.1\r\nhost: x\r\n", rest, before=1)
    assert (answer.status, list(answer.json())) == (status, ["error"])
    answer = ask(post(b"x"), b"POST /v1/messages HTTP/1.1\r\nhost: x\r\n", rest, before=1)
    assert (answer.status, answer.json()["error"]["type"]) == (status, kind)


def test_what_follows_a_request_and_is_none_has_no_path() -> None:
    answer = ask(post(b"x", path=b"/v1/messages"), b"\x00\x01\r\n\r\n", before=1)
    assert (answer.status, list(answer.json())) == (400, ["error"])


def test_a_request_that_comes_too_slowly_behind_another_is_told_so_in_its_paths_shape() -> None:
    async def story(server: Server) -> None:
        server.answers_at_once = False
        client, now = await server.connect(), asyncio.get_running_loop().time
        client.send(get(b"/1"), post(b"whole", path=b"/v1/messages")[:-1])
        first, late = await server.held.get(), now() + 3 * SHORT_S
        await until(lambda: now() > late)
        first.reply(200, [], b"one")
        assert (await client.read_answer()).body == b"one"
        answer = await client.read_answer()
        assert (answer.status, answer.json()["type"]) == (408, "error")

    run(story, head_s=LONG_S, body_s=SHORT_S)


def test_anthropics_client_reads_why_its_request_is_too_large(demo: Home) -> None:
    daemon = demo.daemon
    with (
        anthropic.Anthropic(base_url=daemon.url, api_key=daemon.key, max_retries=0) as client,
        pytest.raises(anthropic.RequestTooLargeError) as caught,
    ):
        client.messages.create(model="stoker-demo", messages=[{"role": "user", "content": "x" * 33 * 2**20}], max_tokens=1)
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["error"]["type"] == "request_too_large"
    assert "gateway.body_limit_bytes" in caught.value.body["error"]["message"]
