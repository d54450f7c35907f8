"""What runs under a key that is revoked: it is told so in its stream's own format if there is room, and never ends whole."""

from __future__ import annotations

import asyncio
import json

import pytest

from door_stage import Engine, Stage, act, until
from gateway_client import Client
from waiting_stage import Bringing

CHAT, MESSAGES, RESPONSES = b"/v1/chat/completions", b"/v1/messages", b"/v1/responses"
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"
TOKEN = b'data: {"model": "m", "choices": []}\n\n'
CHUNK = b"%x\r\n%s\r\n" % (len(TOKEN), TOKEN)
LAST = b"0\r\n\r\n"
JSON_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n"


class Holding(Engine):
    """Says so much of a reply, and then nothing until its connection ends."""

    def __init__(self, said: bytes) -> None:
        super().__init__(self._hold)
        self._said = said

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        await super().talk(reader, writer)

    async def _hold(self, writer: asyncio.StreamWriter) -> None:
        writer.write(self._said)
        await self._reader.read()


async def revoke_after(stage: Stage, client: Client, part: bytes) -> bytes:
    """Revokes the key once a part of the reply has come; returns all that followed the part, to the connection's end."""
    await client.reader.readuntil(part)
    assert stage.meter.cut("owner") == 1
    rest = await client.read_to_the_end()
    await until(lambda: stage.engine.talking == 0)
    return rest


def play(said: bytes, part: bytes, path: bytes = CHAT, filters: tuple[str, ...] = ()) -> bytes:
    """Returns what a client gets after a part of its reply when its key is revoked."""
    stage = Stage(Holding(said), filters)
    stage.path = path
    rests: list[bytes] = []

    async def story(_: Stage) -> None:
        rests.append(await revoke_after(stage, await stage.chat(stream=True), part))

    act(stage, story)
    assert [record.status for record in stage.used] == [200]
    return rests[0]


def read_error(rest: bytes) -> dict[str, str]:
    """Returns the error in the last event."""
    found: dict[str, str] = json.loads(rest.rpartition(b"data: ")[2].partition(b"\n")[0])["error"]
    return found


@pytest.mark.parametrize("filters", [(), ("reasoning-field=reasoning_content",)], ids=["plain", "filtered"])
@pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES])
def test_a_stream_ends_with_an_error_of_its_own_format_and_without_its_end(path: bytes, filters: tuple[str, ...]) -> None:
    rest = play(CHUNKED + CHUNK, b"[]}\n\n", path, filters)
    error = read_error(rest)
    assert (error["type"], error["code"], error["src"]) == ("authentication_error", "revoked_api_key", "stoker")
    assert error["message"] == "The key `owner` was revoked."
    assert (b"event: error\n" in rest) == (path != CHAT)
    assert not rest.endswith(LAST)


def test_an_event_that_had_come_in_part_is_closed_first() -> None:
    rest = play(CHUNKED + b"%x\r\n%s" % (len(TOKEN), TOKEN[:20]), TOKEN[:20])
    missing = len(TOKEN) - 20
    assert rest[missing : missing + 2] == b"\r\n"
    assert rest[:missing].strip() == b""
    assert read_error(rest)["code"] == "revoked_api_key"
    assert not rest.endswith(LAST)


@pytest.mark.parametrize(
    ("said", "part"),
    [
        (HEAD + b"content-length: 1000\r\n\r\n" + TOKEN, TOKEN), (JSON_HEAD + b'{"model":', b'"model":'),
        (CHUNKED.replace(b"chunked", b"chunked\r\ncontent-encoding: gzip") + b"5\r\nabcde\r\n", b"abcde\r\n"),
    ],
    ids=["a length was said", "no stream", "compressed"],
)  # fmt: skip
def test_a_reply_in_which_there_is_no_room_is_cut(said: bytes, part: bytes) -> None:
    assert play(said, part) == b""


def test_a_client_that_waits_for_a_start_gets_the_error_as_its_first_event() -> None:
    stage = Bringing()
    stage.gateway = {"wait_comment_s": 0.1}

    async def story(_: Stage) -> None:
        client = await stage.chat(stream=True)
        await client.reader.readuntil(b"\n\n\r\n")
        stage.meter.cut("owner")
        event = (await client.read_broken_chunks()).rpartition(b"data: ")[2]
        assert json.loads(event)["error"]["code"] == "revoked_api_key"
        stage.come()

    act(stage, story)
    assert stage.engine.asked == []
    assert [record.status for record in stage.used] == [401]


def test_a_client_that_does_not_read_is_cut_at_once() -> None:
    async def floods(writer: asyncio.StreamWriter) -> None:
        writer.write(CHUNKED)
        while True:
            writer.write(CHUNK * 1000)
            await writer.drain()

    stage = Stage(Engine(floods), ())

    async def story(_: Stage) -> None:
        client = await stage.chat(stream=True)
        client.stop_reading()
        [connection] = stage.door._connections
        await until(lambda: connection._paused)
        stage.meter.cut("owner")
        await until(lambda: not stage.door._connections)

    act(stage, story)
