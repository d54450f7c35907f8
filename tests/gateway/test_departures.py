"""A client that leaves is gone for the engine too, before anything else happens; and no small piece waits for another."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket

import pytest

from door_stage import Engine, HeldEngine, Stage, act, json_answer, until

CHUNKED = b"transfer-encoding: chunked\r\n\r\n"
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n" + CHUNKED + b'13\r\ndata: {"first": 1}\n\r\n'
HALF = b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{"first"'
CASES = {
    "before the first token, streamed": (b"", True), "before the first token, whole": (b"", False),
    "after it, streamed": (STREAM, True), "after it, whole": (HALF, False),
}  # fmt: skip


class Watched(Engine):
    """Says so much to `leaves` and then waits for the end; answers `stays`. `seen` is what it learnt, in its order."""

    def __init__(self, said: bytes) -> None:
        super().__init__(json_answer(b"{}"))
        self._said = said
        self.seen: list[str] = []

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        tag = json.loads(await reader.readexactly(length))["tag"]
        self.seen.append(f"{tag} asks")
        if tag == "leaves":
            writer.write(self._said)
            with contextlib.suppress(ConnectionError):
                await reader.read()
            self.seen.append(f"{tag} is gone")
        else:
            await json_answer(b"{}")(writer)
        writer.close()


@pytest.mark.parametrize("resets", [True, False], ids=["reset", "closed"])
@pytest.mark.parametrize(("said", "stream"), CASES.values(), ids=CASES)
def test_the_engine_learns_of_it_before_anything_that_was_asked_later(said: bytes, stream: bool, resets: bool) -> None:
    engine = Watched(said)

    async def story(stage: Stage) -> None:
        leaves = await stage.chat(stream=stream, tag="leaves")
        await until(lambda: bool(engine.seen))
        if said:
            await leaves.reader.readuntil(b'"first"')
        if resets:
            leaves.writer.transport.abort()
        else:
            leaves.writer.close()
        # In one event loop, and with nothing else to do: what comes first is seen first, however slow the machine is.
        assert (await (await stage.chat(tag="stays")).read_answer()).status == 200

    act(Stage(engine, ()), story)
    assert engine.seen == ["leaves asks", "leaves is gone", "stays asks"]


def sends_at_once(transport: asyncio.BaseTransport) -> bool:
    """Tells whether small writes go out while earlier ones are not acknowledged yet."""
    return bool(transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))


def test_both_ways_send_small_pieces_at_once() -> None:
    stage = Stage(HeldEngine(), ())

    async def story(_: Stage) -> None:
        client = await stage.chat(tag="one")
        gate = await stage.engine.next()  # type: ignore[attr-defined]
        [to_client] = stage.door._connections
        [relay] = stage.door.serving._relays["chat"]
        assert relay._connection is not None
        assert sends_at_once(to_client._transport)
        assert sends_at_once(relay._connection.transport)
        gate.set()
        assert (await client.read_answer()).status == 200

    act(stage, story)
