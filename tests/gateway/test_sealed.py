"""Connections to other boxes: what comes is whole however it comes, and who ended them, and whether, is known."""

from __future__ import annotations

import asyncio
import gc
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from door_stage import until
from stoker.gateway.pinned import WrongCertificate
from stoker.gateway.sealed import Cut, Sealed, open_sealed
from tls_peer import Listener, Pair, Peer

LARGE = bytes(range(256)) * 8192  # 2 MiB
EVENTS = [b"data: %d\n\n" % number for number in range(40)]
End = Callable[[Sealed, Peer], None]


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


@pytest.mark.parametrize("step", [1, 7, 22, 1000])
def test_records_that_come_in_pieces_are_whole(pair: Pair, step: int) -> None:
    async def story() -> None:
        _, listener, peer = await pair.open()
        wire = peer.seal(*EVENTS)
        for at in range(0, len(wire), step):
            peer.writer.write(wire[at : at + step])
            await peer.writer.drain()
            await asyncio.sleep(0)
        await until(lambda: len(listener.whole) == len(b"".join(EVENTS)))
        assert listener.whole == b"".join(EVENTS)

    pair.play(story)


def test_records_that_come_at_once_are_told_at_once_and_a_half_one_later(pair: Pair) -> None:
    async def story() -> None:
        _, listener, peer = await pair.open()
        whole, half = peer.seal(*EVENTS[:-1]), peer.seal(EVENTS[-1])
        peer.writer.write(whole + half[:9])
        await until(lambda: bool(listener.heard))
        assert listener.heard == [b"".join(EVENTS[:-1])]
        peer.writer.write(half[9:])
        await until(lambda: len(listener.heard) == 2)
        assert listener.heard[1] == EVENTS[-1]

    pair.play(story)


def test_large_bodies_go_both_ways(pair: Pair) -> None:
    async def story() -> None:
        sealed, listener, peer = await pair.open()
        sealed.write(LARGE)
        came = bytearray()
        while len(came) < len(LARGE):
            came += await peer.read()
        assert came == LARGE
        peer.writer.write(peer.seal(LARGE))
        await until(lambda: len(listener.whole) == len(LARGE))
        assert listener.whole == LARGE

    pair.play(story)


async def lost(listener: Listener) -> None:
    await until(lambda: bool(listener.lost))


def says_the_end(_: Sealed, peer: Peer) -> None:
    peer.writer.write(peer.seal(b"last words") + peer.seal_end())


def says_the_end_and_goes(sealed: Sealed, peer: Peer) -> None:
    says_the_end(sealed, peer)
    peer.writer.transport.abort()


def closes(sealed: Sealed, _: Peer) -> None:
    sealed.close()


def aborts(sealed: Sealed, _: Peer) -> None:
    sealed.abort()


def cuts(_: Sealed, peer: Peer) -> None:
    peer.writer.close()


def resets(_: Sealed, peer: Peer) -> None:
    peer.writer.transport.abort()


def garbles(_: Sealed, peer: Peer) -> None:
    wire = peer.seal(b"a record that somebody changed on its way")
    peer.writer.write(wire[:-1] + bytes([wire[-1] ^ 1]))


@pytest.mark.parametrize(
    ("end", "kind"),
    [
        (says_the_end, None),
        (says_the_end_and_goes, None),
        (closes, None),
        (aborts, None),
        (cuts, Cut),
        (resets, ConnectionError),
        (garbles, ssl.SSLError),
    ],
)
def test_an_end_is_told_once_and_without_an_error_only_if_it_was_said(pair: Pair, end: End, kind: type | None) -> None:
    async def story() -> None:
        sealed, listener, peer = await pair.open()
        peer.writer.write(peer.seal(b"first"))
        await until(lambda: bool(listener.heard))
        end(sealed, peer)
        await until(lambda: bool(listener.lost))
        sealed.write(b"into the void")
        sealed.close()
        await asyncio.sleep(0)
        [error] = listener.lost
        assert error is None if kind is None else isinstance(error, kind)
        assert listener.whole == b"first" + (b"last words" if end in (says_the_end, says_the_end_and_goes) else b"")
        assert sealed.is_closing()

    pair.play(story)


def test_a_close_is_said_in_tls_after_all_that_was_written(pair: Pair) -> None:
    async def story() -> None:
        sealed, _, peer = await pair.open()
        sealed.write(b"all of it")
        sealed.close()
        assert [await peer.read(), await peer.read()] == [b"all of it", b""]

    pair.play(story)


def test_who_shows_another_certificate_is_told_nothing(pair: Pair) -> None:
    async def story() -> None:
        with pytest.raises(WrongCertificate):
            await open_sealed("127.0.0.1", pair.port, "0" * 64)
        peer = await pair.accepted()
        with pytest.raises((ConnectionError, ssl.SSLError)):
            await peer.read()

    pair.play(story)


def test_an_older_tls_is_not_spoken(pair: Pair) -> None:
    pair.context.maximum_version = ssl.TLSVersion.TLSv1_2

    async def story() -> None:
        with pytest.raises(ssl.SSLError):
            await open_sealed("127.0.0.1", pair.port, pair.pin)

    pair.play(story)


async def leaves(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def talks_plain(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    writer.close()


async def says_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    await reader.read()
    writer.close()


@pytest.mark.parametrize(
    ("answer", "kind"), [(leaves, ConnectionError), (talks_plain, ssl.SSLError), (says_nothing, TimeoutError)]
)
def test_who_does_not_shake_hands_is_not_waited_for(
    pair: Pair, answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]], kind: type[Exception]
) -> None:
    async def story() -> None:
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            with pytest.raises(kind):
                async with asyncio.timeout(0.2):
                    await open_sealed("127.0.0.1", server.sockets[0].getsockname()[1], pair.pin)

    pair.play(story)


async def come_to_rest(read: Callable[[], int], turns: int = 200) -> int:
    """Returns a size once it has been the same for so many turns of the loop, in which sockets are read and written."""
    size, same = read(), 0
    while same < turns:
        await asyncio.sleep(0)
        now = read()
        size, same = now, same + 1 if now == size else 0
    return size


def test_what_is_not_read_is_held_back_and_what_is_not_taken_is_said(pair: Pair) -> None:
    async def story() -> None:
        sealed, listener, peer = await pair.open()
        sealed.pause_reading()
        peer.writer.transport.set_write_buffer_limits(high=0)
        for _ in range(8):  # more than the sockets' buffers hold
            peer.writer.write(peer.seal(LARGE))
        assert await come_to_rest(peer.writer.transport.get_write_buffer_size) > 0
        assert not listener.heard
        sealed.resume_reading()
        await until(lambda: len(listener.whole) == 8 * len(LARGE))
        sealed.set_write_buffer_limits(high=1024)
        for _ in range(8):
            sealed.write(LARGE)
        await until(lambda: listener.paused == [True])
        came = 0
        while came < 8 * len(LARGE):
            came += len(await peer.read())
        await until(lambda: listener.paused == [True, False])

    pair.play(story)


def test_nothing_is_left_for_the_collector_of_cycles(pair: Pair) -> None:
    async def story() -> None:
        for end in (says_the_end, closes, cuts, garbles):
            sealed, listener, peer = await pair.open()
            end(sealed, peer)
            await lost(listener)
            peer.writer.close()
        with pytest.raises(WrongCertificate):
            await open_sealed("127.0.0.1", pair.port, "0" * 64)
        del sealed
        pair.forget()
        await until(lambda: not any(isinstance(one, Sealed) for one in gc.get_objects()))

    gc.collect()
    gc.disable()
    try:
        pair.play(story)
    finally:
        gc.enable()


def test_what_comes_is_told_to_whoever_listens_then(pair: Pair) -> None:
    async def story() -> None:
        sealed, first, peer = await pair.open()
        peer.writer.write(peer.seal(b"one"))
        await until(lambda: bool(first.heard))
        second = Listener()
        sealed.set_protocol(second)
        peer.writer.write(peer.seal(b"two") + peer.seal_end())
        await until(lambda: bool(second.lost))
        assert (first.heard, first.lost, second.heard) == ([b"one"], [], [b"two"])

    pair.play(story)
