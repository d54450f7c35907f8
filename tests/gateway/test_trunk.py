"""Many connections in one: each is as if it were alone, and none holds up another or ends with it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import random
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from struct import pack

import pytest

from door_stage import until
from stoker.gateway.pinned import WrongCertificate
from stoker.gateway.sealed import Cut, Sealed, open_sealed
from stoker.gateway.trunk import trunk as trunk_module
from stoker.gateway.trunk.channel import Channel
from stoker.gateway.trunk.frames import PROTOCOL, WINDOW_BYTES, Kind, render
from stoker.gateway.trunk.trunk import Trunk
from stoker.gateway.trunk.trunks import OldBox
from tls_peer import Listener
from trunk_pair import End, TrunkPair

LARGE = bytes(range(256)) * 8192  # 2 MiB
MANY = 40


@pytest.fixture
def pair(tmp_path: Path) -> TrunkPair:
    return TrunkPair(tmp_path)


def test_all_that_is_written_arrives_on_its_own_channel_however_it_is_mixed(pair: TrunkPair) -> None:
    async def story() -> None:
        chance = random.Random(7)
        pairs = [await pair.open() for _ in range(MANY)]
        written = [(bytearray(), bytearray()) for _ in pairs]
        for _ in range(60 * MANY):
            place, side = chance.randrange(MANY), chance.randrange(2)
            channel = pairs[place][side].channel
            piece = chance.randbytes(chance.choice([1, 60, 200, 5000, 40_000]))
            written[place][1 - side].extend(piece)
            channel.write(piece)
            if chance.random() < 0.1:
                channel.pause_reading()
            if chance.random() < 0.2:
                channel.resume_reading()
            if chance.random() < 0.05:
                await asyncio.sleep(0)
        for end in (end for both in pairs for end in both):
            end.channel.resume_reading()
        ways = [(end, sent) for ends, both in zip(pairs, written, strict=True) for end, sent in zip(ends, both, strict=True)]
        await until(lambda: all(end.size_bytes == len(sent) for end, sent in ways))
        assert all(end.whole == sent for end, sent in ways)
        assert len(pair.here) == 1

    pair.play(story)


def test_what_is_written_in_one_round_goes_in_one_piece(pair: TrunkPair) -> None:
    pieces: list[bytes] = []

    async def story() -> None:
        transport = await open_sealed(*pair.address, PROTOCOL)
        listener = Listener()
        transport.set_protocol(listener)
        for number in range(MANY):
            transport.write(render(number, Kind.OPEN))
        await until(lambda: len(pair.ends) == MANY)
        for end in pair.ends:
            end.channel.write(b"a token")
        await until(lambda: bool(listener.heard))
        pieces.extend(listener.heard)
        transport.abort()

    pair.play(story)
    assert pieces == [b"".join(render(number, Kind.DATA, b"a token") for number in range(MANY))]


def test_a_channel_that_is_not_read_holds_up_its_writer_and_nobody_else(pair: TrunkPair) -> None:
    async def story() -> None:
        slow, writer = await pair.open()
        quick, other = await pair.open()
        slow.channel.pause_reading()
        writer.channel.write(LARGE)
        assert writer.paused == [True]
        other.channel.write(LARGE)
        await until(lambda: quick.size_bytes == len(LARGE))
        assert not slow.whole
        assert writer.paused == [True]
        assert other.paused == [True, False]
        slow.channel.resume_reading()
        await until(lambda: slow.size_bytes == len(LARGE))
        assert (slow.whole, writer.paused) == (LARGE, [True, False])

    pair.play(story)


def test_a_large_body_lets_small_ones_pass(pair: TrunkPair) -> None:
    async def story() -> None:
        ours, theirs = await pair.open()
        small, its_end = await pair.open()
        for _ in range(8):
            ours.channel.write(LARGE)
        small.channel.write(b"small")
        await until(lambda: bool(its_end.size_bytes))
        assert theirs.size_bytes < 8 * len(LARGE)
        await until(lambda: theirs.size_bytes == 8 * len(LARGE))

    pair.play(story)


def close(end: End, _: Trunk) -> None:
    end.channel.close()


def abort(end: End, _: Trunk) -> None:
    end.channel.abort()


def cut_the_trunk(_: End, trunk: Trunk) -> None:
    trunk.abort()


@pytest.mark.parametrize(("leave", "kind"), [(close, type(None)), (abort, Cut), (cut_the_trunk, OSError)])
@pytest.mark.parametrize("side", [0, 1])
def test_an_end_is_told_once_and_without_an_error_only_if_it_was_said(
    pair: TrunkPair, leave: Callable[[End, Trunk], None], kind: type, side: int
) -> None:
    async def story() -> None:
        both, others = await pair.open(), await pair.open()
        leaves, stays = both[side], both[1 - side]
        leaves.channel.write(b"last words")
        await until(lambda: bool(stays.size_bytes))
        leave(leaves, pair.trunk)
        await until(lambda: bool(stays.lost and leaves.lost))
        leaves.channel.write(b"into the void")
        leaves.channel.close()
        stays.channel.abort()
        await asyncio.sleep(0)
        assert (len(stays.lost), len(leaves.lost), stays.whole) == (1, 1, b"last words")
        assert isinstance(stays.lost[0], kind)
        assert stays.channel.is_closing()
        assert leaves.channel.is_closing()
        if leave is not cut_the_trunk:
            others[side].channel.write(b"we go on")
            await until(lambda: bool(others[1 - side].heard))

    pair.play(story)


def test_all_that_was_written_before_the_end_is_told_before_it(pair: TrunkPair) -> None:
    async def story() -> None:
        reader, writer = await pair.open()
        reader.channel.pause_reading()
        writer.channel.write(LARGE)
        writer.channel.close()
        neighbour, its_end = await pair.open()
        its_end.channel.write(b"since")
        await until(lambda: bool(neighbour.size_bytes))
        assert (reader.whole, reader.lost) == (b"", [])
        reader.channel.resume_reading()
        await until(lambda: bool(reader.lost))
        assert (reader.whole, reader.lost, writer.lost) == (LARGE, [None], [None])

    pair.play(story)


def test_what_comes_after_a_close_is_told_nobody(pair: TrunkPair) -> None:
    async def story() -> None:
        ours, theirs = await pair.open()
        theirs.channel.pause_reading()
        ours.channel.write(LARGE)  # so that the close has to wait
        ours.channel.close()
        theirs.channel.write(b"too late")
        theirs.channel.resume_reading()
        await until(lambda: bool(theirs.lost))
        assert (theirs.whole, theirs.lost, ours.whole) == (LARGE, [None], b"")

    pair.play(story)


class Faulty(End):
    """Fails at one thing that it is told."""

    def __init__(self, at: str) -> None:
        super().__init__()
        setattr(self, at, self._fail)

    def _fail(self, *_: object) -> None:
        raise RuntimeError("a fault")


async def say(ours: End, _: End) -> None:
    ours.channel.write(b"anything")


async def leave(ours: End, _: End) -> None:
    ours.channel.close()


async def say_to_one_that_does_not_listen(ours: End, theirs: End) -> None:
    theirs.channel.pause_reading()
    ours.channel.write(b"anything")
    theirs.channel.resume_reading()


async def read_what_was_too_much(ours: End, theirs: End) -> None:
    ours.channel.pause_reading()
    theirs.channel.write(LARGE)
    ours.channel.resume_reading()


@pytest.mark.parametrize(
    ("at", "act"),
    [
        ("data_received", say),
        ("data_received", say_to_one_that_does_not_listen),
        ("connection_lost", leave),
        ("resume_writing", read_what_was_too_much),
    ],
)
def test_a_fault_of_one_ends_that_one(pair: TrunkPair, at: str, act: Callable[[End, End], Awaitable[None]]) -> None:
    async def story() -> None:
        told = list[object]()
        asyncio.get_running_loop().set_exception_handler(lambda _, said: told.append(said["exception"]))
        ours, theirs = await pair.open()
        pair.make_end = lambda: Faulty(at)
        bad, its_end = await pair.open()
        await act(bad, its_end)
        await until(lambda: bool(bad.lost and told))
        assert [str(one) for one in told] == ["a fault"]
        assert at == "connection_lost" or (isinstance(bad.lost[0], Cut) and isinstance(its_end.lost[0], RuntimeError))
        ours.channel.write(b"we go on")
        await until(lambda: bool(theirs.size_bytes))

    pair.play(story)


def test_a_fault_as_one_begins_ends_that_one_and_as_all_end_keeps_it_from_nobody(pair: TrunkPair) -> None:
    async def story() -> None:
        told = list[object]()
        asyncio.get_running_loop().set_exception_handler(lambda _, said: told.append(said["exception"]))
        pair.make_end = lambda: Faulty("connection_lost")
        await pair.open()
        pair.make_end = End
        both = await pair.open()
        pair.make_end = lambda: Faulty("connection_made")
        channel, bad = await pair.open_raw(), End()
        channel.set_protocol(bad)
        await until(lambda: bool(bad.lost))
        pair.trunk.abort()
        await until(lambda: all(end.lost for end in both) and not pair.here)
        assert [str(one) for one in told] == ["a fault"] * 2

    pair.play(story)


def test_nothing_is_not_told(pair: TrunkPair) -> None:
    async def story() -> None:
        pieces = list[bytes]()
        ours, theirs = await pair.open()
        theirs.data_received = pieces.append  # type: ignore[assignment, method-assign]
        theirs.channel.set_protocol(theirs)
        for piece in (b"", b"one", b"", b"two"):
            ours.channel.write(piece)
        await until(lambda: len(pieces) > 1)
        assert pieces == [b"one", b"two"]

    pair.play(story)


def test_a_close_that_the_other_end_does_not_heed_can_still_be_cut(pair: TrunkPair) -> None:
    async def story() -> None:
        ours, theirs = await pair.open()
        theirs.channel.pause_reading()
        ours.channel.write(b"not read")
        ours.channel.close()
        neighbour, its_end = await pair.open()
        neighbour.channel.write(b"since")
        await until(lambda: bool(its_end.size_bytes))
        assert (ours.lost, theirs.lost) == ([None], [])
        ours.channel.abort()
        await until(lambda: bool(theirs.lost))
        assert isinstance(theirs.lost[0], Cut)
        ours.channel.abort()

    pair.play(story)


@pytest.mark.parametrize(
    "said",
    [
        render(1, Kind.OPEN),
        render(0, Kind.OPEN) * 2,
        render(0, Kind.OPEN) + pack(">IHB", 0, 0, 9),
        render(0, Kind.DATA, b"more"),
        render(0, Kind.END),
        render(0, Kind.OPEN) + render(0, Kind.DATA, bytes(16 * 1024 + 1)),
        render(0, Kind.OPEN) + render(0, Kind.GRANT, b"more"[:3]),
        b"GET / HTTP/1.1\r\nhost: a.box\r\n\r\n" + bytes(60_000),
    ],
)
def test_who_does_not_keep_to_the_frames_is_cut(pair: TrunkPair, said: bytes) -> None:
    async def story() -> None:
        transport, listener = await open_sealed(*pair.address, PROTOCOL), Listener()
        transport.set_protocol(listener)
        await until(lambda: bool(pair.here))
        transport.write(said)
        await until(lambda: bool(listener.lost) and not pair.here)
        assert all(end.lost for end in pair.ends)

    pair.play(story)


async def open_unread(pair: TrunkPair) -> tuple[Sealed, Listener]:
    """Opens a channel by hand whose other end does not read."""
    transport, listener = await open_sealed(*pair.address, PROTOCOL), Listener()
    transport.set_protocol(listener)
    transport.write(render(0, Kind.OPEN))
    await until(lambda: bool(pair.ends))
    pair.ends[0].channel.pause_reading()
    return transport, listener


def test_who_sends_more_than_was_granted_is_cut(pair: TrunkPair) -> None:
    async def story() -> None:
        transport, listener = await open_unread(pair)
        transport.write(render(0, Kind.DATA, bytes(32_768)) * (WINDOW_BYTES // 32_768 + 1))
        await until(lambda: bool(listener.lost) and not pair.here)
        assert pair.ends[0].lost

    pair.play(story)


def test_what_comes_after_an_end_that_is_held_back_is_too_much(pair: TrunkPair) -> None:
    async def story() -> None:
        transport, listener = await open_unread(pair)
        transport.write(render(0, Kind.DATA, b"held") + render(0, Kind.END) + render(0, Kind.DATA, b"more"))
        await until(lambda: bool(listener.lost) and not pair.here)

    pair.play(story)


def test_a_door_lets_nobody_open_anything(pair: TrunkPair) -> None:
    async def story() -> None:
        ours, _ = await pair.open()
        pair.trunk.open()
        await until(lambda: bool(ours.lost) and not pair.here)

    pair.play(story)


class Unwilling(asyncio.Protocol):
    """Ends whatever begins."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, Channel)
        transport.abort()


def test_who_asks_and_asks_and_reads_no_answer_is_cut(pair: TrunkPair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trunk_module, "MOST_UNREAD_BYTES", 1024)
    pair.make_end = Unwilling

    async def story() -> None:
        transport, listener = await open_sealed(*pair.address, PROTOCOL), Listener()
        transport.set_protocol(listener)
        await until(lambda: bool(pair.here))
        pair.trunk.pause_writing()  # as the connection below does once its buffers are full
        transport.write(b"".join(render(number, Kind.OPEN) for number in range(1000)))
        await until(lambda: bool(listener.lost) and not pair.here)

    pair.play(story)


def test_one_trunk_is_opened_for_all_who_ask_at_once(pair: TrunkPair) -> None:
    async def story() -> None:
        await asyncio.gather(*(pair.open_raw() for _ in range(MANY)))
        await until(lambda: len(pair.ends) == MANY)
        assert len(pair.here) == 1

    pair.play(story)


def test_a_box_that_does_not_say_that_it_is_there_is_sent_nothing_and_reached_anew(pair: TrunkPair) -> None:
    async def story() -> None:
        ours, _ = await pair.open()
        deaf = pair.trunk
        deaf._transport.pause_reading()
        with pytest.raises(TimeoutError):
            await pair.open_raw()
        assert len(pair.ends) == 1
        _, theirs = await pair.open()
        assert len(pair.here) == 2
        assert not ours.lost, "what runs over the old one is ended by who follows the box, not by who asks"
        deaf._transport.resume_reading()
        ours.channel.write(b"it came back")
        await until(lambda: bool(pair.ends[0].size_bytes))
        assert not theirs.lost

    pair.play(story)


def test_an_end_that_nobody_has_read_yet_is_seen_before_anything_is_asked(pair: TrunkPair) -> None:
    async def story() -> None:
        await pair.open()
        fd = pair.trunk._transport.get_extra_info("socket").fileno()
        with socket.socket(fileno=os.dup(fd)) as other:
            other.shutdown(socket.SHUT_RDWR)
        assert pair.trunks._usable(pair.address) is None  # within the same round of the event loop
        await pair.open()

    pair.play(story)


def test_a_connection_that_does_not_come_about_is_asked_for_again(pair: TrunkPair) -> None:
    async def story() -> None:
        came, (host, port, pin) = list[asyncio.StreamWriter](), pair.address

        async def pass_on_but_the_first(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            came.append(writer)
            if len(came) > 1:
                there, back = await asyncio.open_connection(host, port)
                await asyncio.gather(copy(reader, back), copy(there, writer))

        wire = await asyncio.start_server(pass_on_but_the_first, "127.0.0.1", 0)
        pair.address = ("127.0.0.1", wire.sockets[0].getsockname()[1], pin)
        ours, theirs = await pair.open()
        ours.channel.write(b"it came")
        await until(lambda: bool(theirs.size_bytes))
        assert len(came) == 2
        pair.trunk.abort()
        await until(lambda: bool(ours.lost))
        wire.close()
        came[0].close()

    pair.play(story)


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
    writer.close()


def test_one_that_was_lost_is_opened_anew(pair: TrunkPair) -> None:
    async def story() -> None:
        ours, _ = await pair.open()
        pair.trunk.abort()
        await until(lambda: bool(ours.lost))
        ours, theirs = await pair.open()
        ours.channel.write(b"anew")
        await until(lambda: bool(theirs.size_bytes))

    pair.play(story)


def test_one_that_nobody_uses_is_closed(pair: TrunkPair) -> None:
    async def story() -> None:
        ours, _ = await pair.open()
        ours.channel.close()
        await until(lambda: not pair.here)

    pair.play(story)


def test_who_shows_another_certificate_gets_no_trunk(pair: TrunkPair) -> None:
    async def story() -> None:
        pair.address = (*pair.address[:2], "0" * 64)
        for _ in range(2):
            with pytest.raises(WrongCertificate):
                await pair.open_raw()

    pair.play(story)


def test_a_box_that_knows_no_trunks_is_too_old(tmp_path: Path) -> None:
    pair = TrunkPair(tmp_path)
    pair.context.set_alpn_protocols(["http/1.1"])

    async def story() -> None:
        with pytest.raises(OldBox, match="update it"):
            await pair.open_raw()

    pair.play(story)


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
def test_nothing_is_left_for_the_collector_of_cycles(pair: TrunkPair) -> None:
    async def story() -> None:
        for leave in (close, abort, cut_the_trunk):
            both = await pair.open()
            leave(both[0], pair.trunk)
            await until(lambda both=both: all(end.lost for end in both))  # type: ignore[misc]
        pair.ends.clear()
        pair.trunks.close()
        del both
        kinds = (Channel, Trunk, Sealed)
        await until(lambda: not any(isinstance(one, kinds) for one in gc.get_objects()))

    pair.play(story)
