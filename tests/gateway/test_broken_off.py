"""A stream that ends early says why in its last event, all of which arrives, and is closed without its end."""

from __future__ import annotations

import asyncio
import json
import ssl
from pathlib import Path

import pytest

from certificates import make_certificate
from door_stage import Engine, Stage, act, events, json_answer, raw, run, until
from gateway_client import Client
from stoker.config import GatewayConfig

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
TOKEN = b'data: {"model":"m","choices":[{"delta":{"content":"hi"}}]}\n\n'
DIES = events(TOKEN, ends=False)
LAST = b"0\r\n\r\n"
OLD = b"POST /v1/chat/completions HTTP/1.0\r\nhost: 127.0.0.1\r\nauthorization: Bearer key\r\n"
BODY = b'{"model": "m", "stream": true}'
FILTERS = ("reasoning-field=reasoning_content",)


def code_of(stream: bytes) -> str:
    """Returns the code of the error in the last event."""
    found: str = json.loads(stream.rpartition(b"data: ")[2].partition(b"\n")[0])["error"]["code"]
    return found


@pytest.mark.parametrize("filters", [(), FILTERS], ids=["plain", "filtered"])
def test_the_connection_is_closed_after_the_event(filters: tuple[str, ...]) -> None:
    async def story(stage: Stage) -> None:
        client = await stage.chat(stream=True)
        answer = await client.read_answer(breaks=True)
        assert answer.headers["transfer-encoding"] == "chunked"
        assert code_of(answer.body) == "engine_died"
        await until(lambda: not stage.door._connections or client.reader.at_eof())
        assert (answer.status, [one.status for one in stage.used]) == (200, [502])  # it counts as what it was

    run(DIES, story, filters)


def test_what_was_sent_behind_it_is_not_answered_and_no_reset_swallows_the_event() -> None:
    async def story(stage: Stage) -> None:
        client = await stage.chat(stream=True)
        client.send(b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n" * 3)
        assert code_of((await client.read_answer(breaks=True)).body) == "engine_died"
        client.send(b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")  # and nobody minds
        assert await client.reader.read() == b""

    run(DIES, story)


def test_a_reader_that_stalled_gets_all_of_it_when_it_reads_on() -> None:
    pieces = [TOKEN + b": %s\n\n" % (b"x" * 60_000)] * 150

    async def story(stage: Stage) -> None:
        client = await stage.chat(stream=True)
        client.stop_reading()
        [connection] = stage.door._connections
        await until(lambda: connection._paused)
        client.read_on()
        answer = await client.read_answer(breaks=True)
        assert answer.body.count(b'"content":"hi"') == len(pieces)
        assert code_of(answer.body) == "engine_died"

    run(events(*pieces, ends=False), story)


@pytest.mark.parametrize("reply", [DIES, raw(HEAD + b"content-length: 900\r\n\r\n" + TOKEN)], ids=["chunks", "sized"])
def test_a_client_of_http_1_0_gets_the_event_before_the_close_or_a_reset(reply: object) -> None:
    async def story(stage: Stage) -> None:
        client = await stage.connect()
        client.send(OLD, b"content-length: %d\r\n\r\n" % len(BODY), BODY)
        head = await client.reader.readuntil(b"\r\n\r\n")
        assert b"transfer-encoding" not in head
        if b"content-length" in head:  # it sees for itself that bytes are missing
            with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
                await client.reader.readexactly(900)
        else:
            assert code_of(await client.reader.read()) == "engine_died"

    run(reply, story)  # type: ignore[arg-type]


@pytest.mark.parametrize("filters", [(), FILTERS], ids=["plain", "filtered"])
@pytest.mark.parametrize(
    ("path", "last", "breaks"),
    [
        (b"/v1/chat/completions", b"", True),
        (b"/v1/chat/completions", b"data: [DONE]\n\n", False),
        (b"/v1/chat/completions", b'data: {"error":{"message":"out of memory"}}\n\n', False),
        (b"/v1/messages", b'event: message_delta\ndata: {"type":"message_delta"}\n\n', True),
        (b"/v1/messages", b'event: message_stop\ndata: {"type":"message_stop"}\n\n', False),
        (b"/v1/responses", b'data: {"type":"response.completed"}\n\n', False),
        (b"/v1/audio/speech", b"", False),  # whose events nobody here knows
    ],
)
def test_a_stream_that_only_its_close_ends_is_whole_with_its_last_event_alone(
    path: bytes, last: bytes, breaks: bool, filters: tuple[str, ...]
) -> None:
    async def story(stage: Stage) -> None:
        client = await stage.request(b"POST", path, body=BODY)
        answer = await client.read_answer(breaks=breaks)
        assert answer.body.startswith(TOKEN + last)
        assert (b"engine_died" in answer.body) is breaks

    run(raw(HEAD + b"connection: close\r\n\r\n" + TOKEN + last), story, filters)


def test_half_a_reply_that_only_its_close_would_end_is_reset() -> None:
    async def half(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n4\r\n[1, \r\n")

    async def story(stage: Stage) -> None:
        client = await stage.connect()
        client.send(OLD, b"content-length: %d\r\n\r\n" % len(BODY), BODY)
        with pytest.raises(ConnectionResetError):
            await client.reader.read()

    run(half, story)


class OverTls(Stage):
    """A stage whose door speaks TLS."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        certificate, key = make_certificate(folder)
        super().__init__(engine, (), GatewayConfig(port=0, tls_certificate=str(certificate), tls_key=str(key)))
        self._trusted = ssl.create_default_context(cafile=str(certificate))

    async def connect(self) -> Client:
        self._clients.append(Client(*await asyncio.open_connection("127.0.0.1", self.port, ssl=self._trusted)))
        return self._clients[-1]


def test_over_tls_the_event_arrives_and_the_body_has_no_end(tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        answer = await (await stage.chat(stream=True)).read_answer(breaks=True)
        assert code_of(answer.body) == "engine_died"

    act(OverTls(Engine(DIES), tmp_path), story)


def test_over_tls_a_whole_stream_has_its_end(tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        assert (await (await stage.chat(stream=True)).read_answer()).body == TOKEN

    act(OverTls(Engine(events(TOKEN)), tmp_path), story)


def test_a_reply_that_is_whole_keeps_its_connection() -> None:
    async def story(stage: Stage) -> None:
        client = await stage.chat()
        assert (await client.read_answer()).status == 200
        client.send(b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        assert (await client.read_answer()).status == 200

    run(json_answer(b"{}"), story)
