"""WebSockets through the gateway: a tunnel to a service's own path, for who may ask it, in both directions."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
from collections.abc import Awaitable, Callable

import pytest

from door_stage import Engine, Stage, act, json_answer, raw, run
from gateway_client import Client
from stoker.gateway.directory import Entry
from stoker.gateway.exchange import Headers

MIB = 2**20
KEY = b"dGhlIHNhbXBsZSBub25jZQ=="
OFFER = (
    b"connection: keep-alive, Upgrade",
    b"upgrade: WebSocket",
    b"sec-websocket-version: 13",
    b"sec-websocket-key: " + KEY,
)
PROOF = base64.b64encode(hashlib.sha1(KEY + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())  # noqa: S324 (RFC 6455, 4.2.2)
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: "
TEXT, CLOSE = 0x81, 0x88
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Talker(Engine):
    """An engine that takes the offer, then does as told; `first` it says in the same write as the head."""

    def __init__(self, talks: Talk, first: bytes = b"") -> None:
        super().__init__(json_answer(b"{}"))
        self._talks = talks
        self._first = first
        self.heard = b""
        self.ended = asyncio.Event()

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.asked.append((head, b""))
        writer.write(SWITCH + PROOF + b"\r\n\r\n" + self._first)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await self._talks(reader, writer)
        writer.close()
        self.ended.set()


def frame(kind: int, said: bytes, mask: bytes = b"") -> bytes:
    """A frame (RFC 6455, 5.2), masked as a client's where a mask is given."""
    bit, size = (0x80 if mask else 0), len(said)
    length = bytes([bit | size]) if size < 126 else bytes([bit | 127]) + size.to_bytes(8, "big")
    data = bytes(byte ^ mask[at % 4] for at, byte in enumerate(said)) if mask else said
    return bytes([kind]) + length + mask + data


async def read_frame(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    kind, length = await reader.readexactly(2)
    size = length & 0x7F
    if size == 127:
        size = int.from_bytes(await reader.readexactly(8), "big")
    mask = await reader.readexactly(4) if length & 0x80 else b"\0\0\0\0"
    said = await reader.readexactly(size)
    return kind, bytes(byte ^ mask[at % 4] for at, byte in enumerate(said)) if any(mask) else said


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Says back what it hears until it is told to close, as RFC 6455 closes."""
    kind = TEXT
    while kind != CLOSE:
        kind, said = await read_frame(reader)
        writer.write(frame(kind, said))
        await writer.drain()


async def open_tunnel(stage: Stage, path: bytes = b"/service/chat/v1/realtime?model=m") -> tuple[Client, bytes]:
    client = await stage.request(b"GET", path, *OFFER)
    return client, await client.reader.readuntil(b"\r\n\r\n")


def test_frames_pass_both_ways_and_the_engine_sees_a_handshake_of_its_own() -> None:
    async def story(stage: Stage) -> None:
        client, head = await open_tunnel(stage)
        assert head.startswith(b"HTTP/1.1 101 ")
        assert b"sec-websocket-accept: " + PROOF in head
        assert b"x-stoker-service: chat" in head
        for said in (b"hello", b"", b"x" * 100_000):
            client.send(frame(TEXT, said, b"mask"))
            assert await read_frame(client.reader) == (TEXT, said)
        client.send(frame(CLOSE, b"\x03\xe8", b"mask"))
        assert await read_frame(client.reader) == (CLOSE, b"\x03\xe8")
        assert await client.is_closed()

    (head, _) = run(Talker(echo), story).asked[0]
    lines = head.lower().split(b"\r\n")
    assert lines[0] == b"get /v1/realtime?model=m http/1.1"
    assert {b"upgrade: websocket", b"connection: upgrade", b"sec-websocket-key: " + KEY.lower()} <= set(lines)
    assert b"authorization: bearer engine" in lines
    assert not any(line.startswith(b"content-length") for line in lines)


def test_what_the_engine_says_with_the_handshake_arrives() -> None:
    async def story(stage: Stage) -> None:
        client, _ = await open_tunnel(stage)
        assert await read_frame(client.reader) == (TEXT, b"welcome")

    run(Talker(echo, frame(TEXT, b"welcome")), story)


def test_a_tunnel_that_had_to_wait_for_its_turn_passes_frames_too() -> None:
    async def story(stage: Stage) -> None:
        client = await stage.request(b"GET", b"/v1/models")
        client.send(
            b"\r\n".join([b"GET /service/chat/ws HTTP/1.1", b"host: 127.0.0.1", b"x-api-key: key", *OFFER, b"", b""])
        )
        assert (await client.read_answer()).status == 200
        assert (await client.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
        client.send(frame(TEXT, b"hello", b"mask"))
        assert await read_frame(client.reader) == (TEXT, b"hello")

    run(Talker(echo), story)


def test_a_client_that_leaves_ends_the_tunnel_and_its_last_words_arrive() -> None:
    said = b"y" * MIB

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        engine.heard = (await read_frame(reader))[1]
        assert await reader.read() == b""

    async def story(stage: Stage) -> None:
        client, _ = await open_tunnel(stage)
        client.send(frame(TEXT, said, b"mask"))
        client.writer.close()
        await engine.ended.wait()

    engine = Talker(listen)
    run(engine, story)
    assert engine.heard == said


@pytest.mark.parametrize("breaks", [False, True], ids=["closes", "breaks"])
def test_an_engine_that_leaves_ends_the_tunnel(breaks: bool) -> None:
    async def leave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(frame(TEXT, b"bye"))
        await writer.drain()
        await read_frame(reader)
        if breaks:
            writer.transport.abort()

    async def story(stage: Stage) -> None:
        client, _ = await open_tunnel(stage)
        assert await read_frame(client.reader) == (TEXT, b"bye")
        client.send(frame(TEXT, b"go", b"mask"))
        assert await client.is_closed()

    run(Talker(leave), story)


def test_an_engine_that_does_not_listen_holds_its_client_back() -> None:
    """What cannot be written any more has filled the sockets and our buffers, which have a limit."""
    may_listen = asyncio.Event()
    size = 64 * MIB

    async def listen_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await may_listen.wait()
        left = size
        while left:
            left -= len(await reader.read(MIB))
        writer.write(frame(TEXT, b"heard"))
        await reader.read()

    async def story(stage: Stage) -> None:
        client, _ = await open_tunnel(stage)
        client.writer.transport.set_write_buffer_limits(high=0)
        written = 0
        while written < size:
            client.send(b"z" * MIB)
            written += MIB
            try:
                async with asyncio.timeout(None if may_listen.is_set() else 1.0):
                    await client.writer.drain()
            except TimeoutError:
                may_listen.set()
        assert may_listen.is_set(), "nothing held the client back"
        assert await read_frame(client.reader) == (TEXT, b"heard")

    run(Talker(listen_late), story)


def test_a_client_that_does_not_listen_holds_the_engine_back() -> None:
    held_back = asyncio.Event()
    pieces = 64

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.set_write_buffer_limits(high=0)
        for _ in range(pieces):
            writer.write(b"z" * MIB)
            try:
                async with asyncio.timeout(None if held_back.is_set() else 1.0):
                    await writer.drain()
            except TimeoutError:
                held_back.set()
        await reader.read()

    async def story(stage: Stage) -> None:
        client, _ = await open_tunnel(stage)
        client.stop_reading()
        await held_back.wait()
        client.read_on()
        for _ in range(pieces):
            assert await client.reader.readexactly(MIB) == b"z" * MIB

    run(Talker(speak), story)


def test_an_engine_that_refuses_the_offer_is_heard() -> None:
    async def story(stage: Stage) -> None:
        client = await stage.request(b"GET", b"/service/chat/none", *OFFER)
        answer = await client.read_answer()
        assert (answer.status, answer.json()) == (404, {"no": "socket"})

    run(json_answer(b'{"no": "socket"}', status=404), story)


@pytest.mark.parametrize(
    ("method", "path", "key", "status"),
    [
        (b"GET", b"/service/chat/ws", b"wrong", 401), (b"GET", b"/upstream/m/ws", b"wrong", 401),
        (b"GET", b"/service/other/ws", b"key", 404), (b"GET", b"/v1/chat/completions", b"key", 405),
        (b"GET", b"/v1/realtime", b"key", 400), (b"GET", b"/v1/realtime?model=m", b"wrong", 401),
        (b"GET", b"/v1/models", b"key", 200), (b"GET", b"/health", b"key", 200),
        (b"GET", b"/ws", b"key", 401),
    ],
)  # fmt: skip
def test_no_tunnel_without_the_key_nor_elsewhere(method: bytes, path: bytes, key: bytes, status: int) -> None:
    async def story(stage: Stage) -> None:
        client = await stage.request(method, path, *OFFER, key=key)
        assert (await client.read_answer()).status == status

    assert run(Talker(echo), story).asked == []


@pytest.mark.parametrize("query", [b"model=m", b"x=1&mod%65l=%6D&y", b"model=called"], ids=["plain", "odd", "alias"])
def test_realtime_at_the_top_goes_to_the_model_that_its_query_names(query: bytes) -> None:
    engine = Talker(echo)

    class Named(Stage):
        def find(self, model: str, headers: Headers | None = None) -> Entry | None:
            entry = super().find("m" if model == "called" else model)
            return entry._replace(model=model, alias_of="m") if entry and model == "called" else entry

    async def story(stage: Stage) -> None:
        client, head = await open_tunnel(stage, b"/v1/realtime?" + query)
        assert head.startswith(b"HTTP/1.1 101 ")
        assert b"x-stoker-model: m\r\n" in head
        assert (b"x-stoker-filters: alias\r\n" in head) == (query == b"model=called")
        client.send(frame(TEXT, b"hello", b"mask"))
        assert await read_frame(client.reader) == (TEXT, b"hello")
        client.send(frame(CLOSE, b"", b"mask"))

    act(Named(engine, ()), story)
    said = b"model=m" if query == b"model=called" else query
    assert engine.asked[0][0].startswith(b"GET /v1/realtime?%s HTTP/1.1\r\n" % said)


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        (b"", 400, "invalid_model"), (b"?model=", 400, "invalid_model"), (b"?model=m&model=other", 400, "invalid_model"),
        (b"?model=m&mode%6C=m", 400, "invalid_model"), (b"?model=other", 404, "model_not_found"),
    ],
)  # fmt: skip
def test_realtime_that_names_no_one_model_reaches_no_engine(query: bytes, status: int, code: str) -> None:
    async def story(stage: Stage) -> None:
        client = await stage.request(b"GET", b"/v1/realtime" + query, *OFFER)
        answer = await client.read_answer()
        assert (answer.status, answer.code) == (status, code)

    assert run(Talker(echo), story).asked == []


def test_realtime_without_an_offer_is_told_what_it_is() -> None:
    async def story(stage: Stage) -> None:
        answer = await (await stage.request(b"GET", b"/v1/realtime?model=m")).read_answer()
        assert (answer.status, answer.code, answer.headers["upgrade"]) == (426, "upgrade_required", "websocket")
        posted = await (await stage.request(b"POST", b"/v1/realtime?model=m", body=b"{}")).read_answer()
        assert (posted.status, posted.headers["allow"]) == (405, "GET")

    assert run(Talker(echo), story).asked == []


def test_a_page_of_another_site_opens_no_tunnel() -> None:
    async def story(stage: Stage) -> None:
        client = await stage.request(b"GET", b"/service/chat/ws", *OFFER, b"origin: https://evil.example")
        assert (await client.read_answer()).code == "foreign_origin"

    assert run(Talker(echo), story).asked == []


@pytest.mark.parametrize("path", [b"/v1/chat/completions", b"/service/chat/v1/chat/completions"])
def test_an_offer_with_a_post_is_passed_over(path: bytes) -> None:
    async def story(stage: Stage) -> None:
        client = await stage.request(b"POST", path, *OFFER, body=json.dumps({"model": "m", "messages": []}).encode())
        assert (await client.read_answer()).status == 200

    (head, _) = run(json_answer(b"{}"), story).asked[0]
    assert b"upgrade: " not in head.lower()


def test_an_engine_that_switches_unasked_opens_no_tunnel() -> None:
    async def story(stage: Stage) -> None:
        answer = await (await stage.chat()).read_answer()
        assert (answer.status, answer.code) == (502, "engine_malformed")

    run(raw(SWITCH + PROOF + b"\r\n\r\n"), story)
