"""Requests to another box's engine go over one connection, and are as they would be to one's own: whole, apart, ended."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from door_stage import Engine, Stage, act, events, json_answer, raw, until
from far_stage import KEY, LIMITS, LINK, FarStage
from stoker.gateway.connection import WRITE_BUFFER_BYTES
from stoker.gateway.sealed import Sealed, open_sealed
from stoker.gateway.trunk import guests
from stoker.gateway.trunk.frames import PROTOCOL, WINDOW_BYTES, Kind, render
from tls_peer import Listener

MIB = 2**20
DONE = b"data: [DONE]\n\n"
LARGE = json.dumps({"model": "m", "text": "a" * 8 * MIB}).encode()
MANY = 32
Story = Callable[[FarStage], Awaitable[None]]
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n"
OFFER = (b"connection: Upgrade", b"upgrade: websocket", b"sec-websocket-version: 13", b"sec-websocket-key: " + b"a" * 24)


@pytest.fixture
def play(tmp_path: Path) -> Callable[[Engine, Story], None]:
    """Plays a story in front of an engine of a far box."""

    def played(engine: Engine, story: Story) -> None:
        async def told(stage: Stage) -> None:
            assert isinstance(stage, FarStage)
            await story(stage)

        act(FarStage(engine, tmp_path), told)

    return played


Play = Callable[[Engine, Story], None]


def trunks(stage: FarStage) -> int:
    return len(stage.far._guests)


def test_large_bodies_are_whole_both_ways_and_say_which_box_it_was(play: Play) -> None:
    engine = Engine(json_answer(LARGE))

    async def story(stage: FarStage) -> None:
        answer = await (await stage.chat(text="b" * 8 * MIB)).read_answer()
        assert (answer.status, answer.headers["x-stoker-box"], answer.body == LARGE) == (200, "far", True)

    play(engine, story)
    [(_, body)] = engine.asked
    assert json.loads(body)["text"] == "b" * 8 * MIB


def test_many_at_once_share_one_connection_and_each_gets_its_own(play: Play) -> None:
    class Echo(Engine):
        async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = await reader.readuntil(b"\r\n\r\n")
            body = await reader.readexactly(int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0]))
            tag = json.loads(body)["tag"].encode()
            pieces = [b"data: %s %d\n\n" % (tag, number) for number in range(50)]
            await events(*pieces, DONE)(writer)
            writer.close()

    async def story(stage: FarStage) -> None:
        clients = [await stage.chat(stream=True, tag=f"t{number}") for number in range(MANY)]
        answers = [await client.read_answer() for client in clients]
        assert trunks(stage) == 1
        for number, answer in enumerate(answers):
            lines = [b"data: t%d %d\n\n" % (number, place) for place in range(50)]
            assert answer.body == b"".join(lines) + DONE

    play(Echo(json_answer(b"{}")), story)


def test_a_tunnel_goes_over_it_both_ways(play: Play) -> None:
    said, ended = bytes(range(256)) * 8192, asyncio.Event()

    class Echo(Engine):
        async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(SWITCH)
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
            writer.close()
            ended.set()

    async def story(stage: FarStage) -> None:
        client = await stage.request(b"GET", b"/service/chat/v1/realtime?model=m", *OFFER)
        head = await client.reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101 ")
        client.send(said)
        assert await client.reader.readexactly(len(said)) == said
        client.writer.close()
        await ended.wait()

    play(Echo(json_answer(b"{}")), story)


def test_a_client_that_leaves_is_gone_for_the_engine_and_the_others_go_on(play: Play) -> None:
    gone = list[str]()

    class Watched(Engine):
        async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
            tag = json.loads(await reader.readexactly(length))["tag"]
            writer.write(STREAM + b"5\r\nfirst\r\n")
            if tag == "leaves":
                with contextlib.suppress(ConnectionError):
                    await reader.read()
                gone.append(tag)
            else:
                await until(lambda: bool(gone))
                writer.write(b"4\r\nlast\r\n0\r\n\r\n")
            writer.close()

    async def story(stage: FarStage) -> None:
        stays, leaves = await stage.chat(stream=True, tag="stays"), await stage.chat(stream=True, tag="leaves")
        for client in (stays, leaves):
            await client.reader.readuntil(b"first")
        leaves.writer.transport.abort()
        assert (await stays.reader.readuntil(b"0\r\n\r\n")).endswith(b"last\r\n0\r\n\r\n")
        assert (gone, trunks(stage)) == (["leaves"], 1)

    play(Watched(json_answer(b"{}")), story)


def test_a_reply_that_breaks_off_ends_with_an_error_that_names_the_box(play: Play) -> None:
    async def story(stage: FarStage) -> None:
        answer = await (await stage.chat(stream=True)).read_answer(breaks=True)
        assert b"The engine of chat" in answer.body
        assert b'"code":"engine_died"' in answer.body
        assert DONE not in answer.body

    play(Engine(raw(STREAM + b"5\r\nfirs")), story)


def test_a_client_that_reads_nothing_stops_its_engine_and_no_other_answer(play: Play) -> None:
    flood = b"data: " + b"x" * 4000 + b"\n\n"
    written = [0]

    class Flood(Engine):
        async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
            slow = json.loads(await reader.readexactly(length))["tag"] == "slow"
            with contextlib.suppress(ConnectionError):
                await events(DONE, ends=not slow)(writer)
                while slow:
                    writer.write(b"%x\r\n%s\r\n" % (len(flood), flood))
                    await writer.drain()
                    written[0] += len(flood)
            writer.close()

    async def story(stage: FarStage) -> None:
        slow = await stage.chat(stream=True, tag="slow")
        await slow.reader.readuntil(DONE)
        slow.stop_reading()
        size, same = 0, 0
        while same < 20:  # answers that come whole while the engine of the slow one has come to rest
            assert (await (await stage.chat(stream=True, tag="quick")).read_answer()).body == DONE
            same, size = (same + 1 if written[0] == size else 0), written[0]
        assert size > WINDOW_BYTES
        slow.writer.transport.abort()
        await until(lambda: not stage.door.serving.in_flight("chat"))

    play(Flood(json_answer(b"{}")), story)


class Endless(Engine):
    """Begins a stream, and waits for its reader to leave."""

    def __init__(self) -> None:
        super().__init__(json_answer(b"{}"))
        self.ended = asyncio.Event()

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await events(b"data: first\n\n", ends=False)(writer)
        with contextlib.suppress(ConnectionError):
            await reader.read()
        writer.close()
        self.ended.set()


def test_a_link_that_is_taken_away_ends_what_runs_over_it(play: Play) -> None:
    engine = Endless()

    async def story(stage: FarStage) -> None:
        client = await stage.chat(stream=True)
        await client.reader.readuntil(b"first")
        assert stage.far.cut(LINK) == 1
        assert b'"code":"engine_died"' in await client.read_to_the_end()
        await engine.ended.wait()

    play(engine, story)


def test_what_was_not_sent_yet_does_not_end_with_what_its_box_was_answering(play: Play) -> None:
    engine = Endless()

    async def story(stage: FarStage) -> None:
        stream = await stage.chat(stream=True)
        await stream.reader.readuntil(b"first")
        [guest] = stage.far._guests
        guest.trunk._transport.pause_reading()
        waits = await stage.chat()
        await until(lambda: stage.door.serving.in_flight("chat") == 2)
        stage.door.serving.end_all("chat", "box_away", "The box far is away.")
        assert b'"code":"box_away"' in await stream.read_to_the_end()
        guest.trunk._transport.resume_reading()
        await engine.ended.wait()
        engine.ended.clear()
        await waits.reader.readuntil(b"first")
        waits.writer.transport.abort()
        await engine.ended.wait()

    play(engine, story)


def test_a_burst_is_answered_though_all_of_it_begins_before_the_first_key_is_known(play: Play) -> None:
    many = 200
    head = b"POST /box/chat/p/v1/chat/completions HTTP/1.1\r\nhost: a\r\nauthorization: Bearer %s\r\n" % KEY.encode()
    asks = head + b'content-length: 14\r\n\r\n{"model": "m"}'

    async def story(stage: FarStage) -> None:
        listener = Listener()
        door = await come_as_a_stranger(stage, listener)
        door.write(b"".join(render(number, Kind.OPEN) for number in range(many)))
        door.write(b"".join(render(number, Kind.DATA, asks) for number in range(many)))
        await until(lambda: listener.whole.count(b"HTTP/1.1 200 OK") == many or bool(listener.lost))
        assert not listener.lost

    play(Engine(json_answer(b"{}")), story)


async def come_as_a_stranger(stage: FarStage, listener: Listener) -> Sealed:
    stranger = await open_sealed(*stage.link, PROTOCOL)
    stranger.set_protocol(listener)
    return stranger


def test_who_shows_no_key_may_open_few_channels(play: Play) -> None:
    async def story(stage: FarStage) -> None:
        listener, few = Listener(), guests.STRANGERS_CHANNELS
        stranger = await come_as_a_stranger(stage, listener)
        stranger.write(b"".join(render(number, Kind.OPEN) for number in range(few)))
        stranger.write(render(0, Kind.ASK))
        await until(lambda: listener.whole.endswith(render(0, Kind.HERE)))
        assert not listener.lost
        stranger.write(render(few, Kind.OPEN))
        await until(lambda: bool(listener.lost))
        client = await stage.chat()
        assert (await client.read_answer()).status == 200

    play(Engine(json_answer(b"{}")), story)


def test_who_shows_no_key_has_little_time(tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        assert isinstance(stage, FarStage)
        listener = Listener()
        stranger = await come_as_a_stranger(stage, listener)
        stranger.write(render(0, Kind.OPEN) + render(0, Kind.DATA, b"GET /api/status HTTP/1.1\r\nhost: a\r\n\r\n"))
        await until(lambda: b"unknown_link" in listener.whole)
        await until(lambda: bool(listener.lost))

    stage = FarStage(Engine(json_answer(b"{}")), tmp_path)
    stage.link_limits = LIMITS._replace(head_s=0.2)
    act(stage, story)


def test_a_trunk_is_one_of_the_connections_of_which_there_may_be_so_many(play: Play) -> None:
    async def story(stage: FarStage) -> None:
        stage.far._most_connections = 4
        listeners = [Listener() for _ in range(6)]
        strangers = [await come_as_a_stranger(stage, listener) for listener in listeners]
        await until(lambda: sum(bool(one.lost) for one in listeners) == 2)
        assert [bool(one.lost) for one in listeners] == [False] * 4 + [True] * 2
        assert [one.is_closing() for one in strangers] == [False] * 4 + [True] * 2

    play(Engine(json_answer(b"{}")), story)


def test_answers_that_nobody_reads_do_not_pile_up(play: Play) -> None:
    asks = b"GET /api/status HTTP/1.1\r\nhost: a\r\n\r\n"

    async def story(stage: FarStage) -> None:
        listener = Listener()
        stranger = await come_as_a_stranger(stage, listener)
        stranger.write(render(0, Kind.OPEN))
        stranger.write(render(0, Kind.DATA, asks * 300) * (WINDOW_BYTES // len(asks * 300)))
        stranger.write(render(0, Kind.ASK))
        await until(lambda: listener.whole.endswith(render(0, Kind.HERE)))
        [guest] = stage.far._guests
        [channel] = guest.trunk._channels.values()
        assert WRITE_BUFFER_BYTES < channel.get_write_buffer_size() < 2 * WRITE_BUFFER_BYTES

    play(Engine(json_answer(b"{}")), story)
