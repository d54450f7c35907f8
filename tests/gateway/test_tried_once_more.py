"""A connection that cannot be opened is tried once more at the same engine; what was sent once is never sent again."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
import uvloop

from door_stage import Engine, Stage, json_answer
from kept_engine import KeptEngine

BODY = b'{"model": "m"}'
LARGE = "x" * 4 * 2**20
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing resets the connection


class Loop(uvloop.Loop):
    """The daemon's own kind of event loop; counts what is connected to which port, and tells when that was refused."""

    def __init__(self) -> None:
        super().__init__()
        self.tried: list[int] = []
        self.on_refused: Callable[[], None] = lambda: None

    async def create_connection(self, *words: Any, **more: Any) -> Any:
        self.tried += words[2:3]
        try:
            return await super().create_connection(*words, **more)
        except ConnectionRefusedError:
            self.on_refused()
            raise


def play(stage: Stage, story: Callable[[Loop], Awaitable[None]]) -> int:
    """Plays a story; returns how often the engine's port was connected to."""
    loops: list[Loop] = []

    def make() -> Loop:
        loops.append(Loop())
        return loops[-1]

    with asyncio.Runner(loop_factory=make) as runner:
        runner.run(stage.play(lambda _: story(loops[0])))
    return loops[0].tried.count(stage.engine_port)


@contextlib.contextmanager
def deaf_socket() -> Iterator[socket.socket]:
    """A socket that has a port and does not listen at it: whoever connects is refused."""
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        yield deaf


def test_an_engine_that_listens_a_moment_later_is_reached_by_the_second_try_and_asked_once() -> None:
    stage = Stage(Engine(json_answer(BODY)), ())

    async def story(loop: Loop) -> None:
        with deaf_socket() as late:
            stage.engine_port = late.getsockname()[1]
            late.setblocking(False)
            listens = asyncio.Event()

            def listen() -> None:
                late.listen()
                listens.set()

            loop.on_refused = listen
            client = await stage.chat()
            await listens.wait()
            peer, _ = await loop.sock_accept(late)
            await stage.engine.talk(*await asyncio.open_connection(sock=peer))
            answer = await client.read_answer()
            assert (answer.status, answer.body) == (200, BODY)

    assert play(stage, story) == 2
    assert len(stage.engine.asked) == 1


def test_an_engine_that_refuses_twice_is_not_tried_a_third_time() -> None:
    stage = Stage(Engine(json_answer(BODY)), ())

    async def story(_: Loop) -> None:
        with deaf_socket() as deaf:
            stage.engine_port = deaf.getsockname()[1]
            answer = await (await stage.chat()).read_answer()
            assert (answer.status, answer.code) == (502, "engine_unreachable")

    assert play(stage, story) == 2


def reset(writer: asyncio.StreamWriter) -> None:
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()


class Deserter(Engine):
    """Takes what is asked up to a point and cuts the connection; `connected` counts them."""

    def __init__(self, reads: int) -> None:
        super().__init__(json_answer(BODY))
        self.reads, self.connected = reads, 0

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connected += 1
        await reader.readexactly(self.reads)
        reset(writer)


@pytest.mark.parametrize("reads", [0, 1, 100_000], ids=["nothing", "a byte", "a part of the body"])
def test_an_engine_that_takes_the_connection_and_cuts_it_is_asked_once(reads: int) -> None:
    engine = Deserter(reads)
    stage = Stage(engine, ())

    async def story(_: Loop) -> None:
        answer = await (await stage.chat(text=LARGE)).read_answer()
        assert (answer.status, answer.code) == (502, "engine_died")

    assert play(stage, story) == 1
    assert engine.connected == 1


def test_an_engine_that_closes_once_it_has_read_a_request_is_asked_once() -> None:
    async def leaves(writer: asyncio.StreamWriter) -> None:
        reset(writer)

    stage = Stage(Engine(leaves), ())

    async def story(_: Loop) -> None:
        assert (await (await stage.chat()).read_answer()).code == "engine_died"

    assert play(stage, story) == 1
    assert len(stage.engine.asked) == 1


def test_a_kept_connection_that_breaks_with_its_second_request_is_no_reason_to_ask_again() -> None:
    async def leaves(writer: asyncio.StreamWriter) -> None:
        reset(writer)

    engine = KeptEngine(json_answer(BODY), leaves)
    stage = Stage(engine, ())

    async def story(_: Loop) -> None:
        assert (await (await stage.chat(tag=1)).read_answer()).status == 200
        assert (await (await stage.chat(tag=2)).read_answer()).code == "engine_died"

    assert play(stage, story) == 1
    assert engine.uses == [2]
