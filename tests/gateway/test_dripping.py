"""Clients that send a byte now and then, to hold a connection for ever."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from gateway_client import LOOPS, Client, Loop, Server, post, run

SHORT_S, DRIP_S, LONG_S = 1.0, 0.05, 30.0
BODY_BYTES, PIECE_BYTES = 500_000, 20_000


async def drip(client: Client, raw: bytes, piece_bytes: int = 1) -> bool:
    """Sends piece by piece; tells whether the connection was closed meanwhile."""
    for begin in range(0, len(raw), piece_bytes):
        client.send(raw[begin : begin + piece_bytes])
        await asyncio.sleep(DRIP_S)  # the pace of the client, which is what is tested
        if client.reader.at_eof() or client.writer.transport.is_closing():
            return True
    return False


@pytest.mark.parametrize("loop", LOOPS, ids=["asyncio", "uvloop"])
def test_a_dripped_head_is_dropped_although_bytes_still_come(loop: Loop) -> None:
    async def story(server: Server) -> None:
        assert await drip(await server.connect(), b"GET / HTTP/1.1\r\nx: " + b"h" * 10_000)

    assert run(story, loop, head_s=SHORT_S, body_s=LONG_S).handled == 0


@pytest.mark.parametrize("loop", LOOPS, ids=["asyncio", "uvloop"])
def test_a_dripped_body_is_dropped_although_bytes_still_come(loop: Loop) -> None:
    async def story(server: Server) -> None:
        assert await drip(await server.connect(), post(b"b" * 10_000), 20)

    assert run(story, loop, head_s=LONG_S, body_s=SHORT_S).handled == 0


@pytest.mark.parametrize("loop", LOOPS, ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("by_chunks", [False, True], ids=["length", "chunks"])
def test_a_body_that_comes_slowly_but_comes_is_taken(loop: Loop, by_chunks: bool) -> None:
    async def story(server: Server) -> None:
        client = await server.connect()
        pieces = [b"b" * PIECE_BYTES] * (BODY_BYTES // PIECE_BYTES)
        head, tail = post(b"b" * BODY_BYTES)[:-BODY_BYTES], b""
        if by_chunks:
            head, tail = b"POST /p HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n", b"0\r\n\r\n"
            pieces = [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces]
        for piece in itertools.chain([head], pieces, [tail]):
            assert not await drip(client, piece, len(piece) or 1)
        assert len((await client.read_answer()).body) == BODY_BYTES + len(b"POST /p  ")

    assert run(story, loop, head_s=SHORT_S, body_s=SHORT_S).handled == 1
