"""Large bodies: of clients that nobody knows they are not read, and of nobody they are held longer than he waits."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Awaitable, Callable
from hashlib import sha256

import pytest

from door_stage import Engine, Stage, json_answer, run
from gateway_client import Answer, Client
from home import Home, wait_for
from stoker.config import GatewayConfig
from stoker.gateway.request_reader import ANYBODYS_BODY_BYTES
from stoker.records import NamedKey

MIB = 1024**2
CHAT = b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\n"
WRONG, GONE, GOOD = b"authorization: Bearer wrong\r\n", b"x-api-key: gone\r\n", b"x-api-key: good\r\n"
LARGE = b'{"model": "m", "padding": "%s"}' % (b"x" * ANYBODYS_BODY_BYTES)


def play(story: Callable[[Client], Awaitable[None]]) -> Engine:
    """Plays a story of one client at a door that knows a good key, one request a minute, and one that was good."""

    async def known(stage: Stage) -> None:
        old = time.time() - 10
        stage.keyring.load([
            NamedKey("good", sha256(b"good").hexdigest(), old, rpm=1),
            NamedKey("gone", sha256(b"gone").hexdigest(), old, revoked=old),
        ])  # fmt: skip
        await story(await stage.connect())

    return run(Engine(json_answer(b"{}")), known)


@pytest.mark.parametrize(
    "rest",
    [
        b"content-length: %d\r\n\r\n" % (ANYBODYS_BODY_BYTES + 1),
        b"content-length: %d\r\nexpect: 100-continue\r\n\r\n" % (ANYBODYS_BODY_BYTES + 1),
        b"transfer-encoding: chunked\r\n\r\n10001\r\n" + b"x" * (ANYBODYS_BODY_BYTES + 1),
        b"upgrade: h2c\r\nconnection: upgrade\r\ntransfer-encoding: chunked\r\n\r\n10001\r\n" + b"x" * 0x10001,
    ],
    ids=["sized", "asks first", "chunked", "offers to upgrade"],
)
@pytest.mark.parametrize(("key", "code"), [(b"", "invalid_api_key"), (WRONG, "invalid_api_key"), (GONE, "revoked_api_key")])
def test_a_strangers_large_body_is_refused_before_it_is_sent(rest: bytes, key: bytes, code: str) -> None:
    async def story(client: Client) -> None:
        client.send(CHAT, key, rest)
        answer = await client.read_answer()
        assert (answer.status, answer.code, answer.headers["connection"]) == (401, code, "close")
        assert answer.headers["www-authenticate"] == "Bearer"

    assert play(story).asked == []


def test_a_strangers_small_body_is_refused_when_it_is_there_and_the_connection_is_kept() -> None:
    async def story(client: Client) -> None:
        for _ in range(2):
            client.send(CHAT, WRONG, b"content-length: %d\r\n\r\n" % ANYBODYS_BODY_BYTES, b"x" * ANYBODYS_BODY_BYTES)
            answer = await client.read_answer()
            assert (answer.status, answer.code, "connection" in answer.headers) == (401, "invalid_api_key", False)

    assert play(story).asked == []


def test_a_known_key_is_looked_at_before_its_large_body_and_counted_once() -> None:
    async def story(client: Client) -> None:
        statuses = []
        for _ in range(2):
            client.send(CHAT, GOOD, b"content-length: %d\r\n\r\n" % len(LARGE), LARGE)
            statuses.append((await client.read_answer()).status)
        assert statuses == [200, 429]

    assert [body for _, body in play(story).asked] == [LARGE]


def memory_bytes(home: Home) -> int:
    return home.daemon.status().daemon.memory_bytes or 0


@pytest.mark.parametrize("whole", [True, False], ids=["idle connections", "senders that leave"])
def test_bodies_are_let_go_with_their_requests(home: Home, whole: bool) -> None:
    home.add_fake("other")
    home.run("up", "other")
    host, port = home.daemon.url.removeprefix("http://").split(":")
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {home.daemon.key}\r\n"
    with contextlib.ExitStack() as open_sockets:
        for _ in range(10):
            client = open_sockets.enter_context(socket.create_connection((host, int(port)), timeout=30))
            client.sendall(head.encode() + b"content-length: %d\r\n\r\n" % (30 * MIB) + b"x" * (30 * MIB - (not whole)))
            if whole:
                assert client.recv(100).startswith(b"HTTP/1.1 400")
            else:
                client.close()
        wait_for("the bodies to be let go", lambda: memory_bytes(home) < 150 * MIB, limit_s=10)


def read_metric(answer: Answer) -> list[bytes]:
    return [line for line in answer.body.splitlines() if b'status="413"' in line]


def test_a_request_that_is_not_read_is_counted_named_and_readable_for_an_allowed_page() -> None:
    async def story(stage: Stage) -> None:
        client = await stage.connect()
        client.send(CHAT, b"x-request-id: mine\r\norigin: https://app.example\r\ncontent-length: 99999999\r\n\r\n")
        answer = await client.read_answer()
        assert (answer.status, answer.headers["x-request-id"]) == (413, "mine")
        assert answer.headers["access-control-allow-origin"] == "https://app.example"
        client = await stage.connect()
        client.send(b"no request\r\n\r\n")
        answer = await client.read_answer()
        assert (answer.status, "access-control-allow-origin" in answer.headers) == (400, False)
        assert answer.headers["x-request-id"]
        metrics = await (await stage.request(b"GET", b"/metrics")).read_answer()
        assert read_metric(metrics) == [
            b'stoker_gateway_requests_total{path="/v1/chat/completions",service="",status="413"} 1.0'
        ]

    run(Engine(json_answer(b"{}")), story, config=GatewayConfig(port=0, cors_origins=("https://app.example",)))
