"""Connections that are opened before a request needs them: to which servers, how many, and none is asked that has ended."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import uvicorn

from door_stage import Answer, Engine, Stage, act, json_answer, until
from kept_engine import KeptEngine

CROWD, BODY = 5, b'{"model": "m"}'
ASKED = b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"


def says(server: bytes) -> Answer:
    return json_answer(BODY, b"server: " + server)


async def ask(stage: Stage, at_once: int = 1) -> None:
    clients = [await stage.chat() for _ in range(at_once)]
    assert [(await client.read_answer()).status for client in clients] == [200] * at_once


def test_a_crowd_at_a_real_uvicorn_finds_as_many_connections_open_as_the_last_one_used() -> None:
    async def story(stage: Stage) -> None:
        async with uvicorn_at() as server:
            stage.engine_port = port_of(server)
            open_ones = server.server_state.connections
            await ask(stage, CROWD)
            first = set(open_ones)
            await until(lambda: len(open_ones) == CROWD and not first & open_ones)
            second = set(open_ones)
            await ask(stage, CROWD)
            assert open_ones == second

    act(Stage(Engine(says(b"nobody")), ()), story)


def test_one_that_the_engine_closes_is_neither_used_nor_opened_again() -> None:
    engine = KeptEngine(says(b"uvicorn"), says(b"uvicorn"))

    async def story(stage: Stage) -> None:
        await ask(stage)
        await until(lambda: engine.uses == [1, 0])
        engine.writers[1].close()
        await ask(stage)
        assert engine.uses == [1, 0, 1]

    act(Stage(engine, ()), story)


def test_none_is_opened_ahead_where_another_server_answers() -> None:
    engine = KeptEngine(says(b"uvicorn"), says(b"another"), says(b"uvicorn"))

    async def story(stage: Stage) -> None:
        await ask(stage)
        await until(lambda: engine.uses == [1, 0])
        await ask(stage)
        await until(lambda: engine.open == 0)
        await ask(stage)
        assert engine.uses == [1, 1, 1]

    act(Stage(engine, ()), story)


def test_an_engine_that_left_is_not_asked_for_more_and_one_that_came_back_is() -> None:
    engine = KeptEngine(says(b"uvicorn"), says(b"uvicorn"))

    async def story(stage: Stage) -> None:
        await ask(stage)
        stage.upstream.close()
        await until(lambda: engine.open == 0)
        stage.upstream = await asyncio.start_server(engine.talk, "127.0.0.1", stage.engine_port)
        await ask(stage)
        await until(lambda: engine.uses == [1, 1, 0])

    act(Stage(engine, ()), story)


def test_uvicorn_closes_a_connection_after_a_reply_and_none_that_was_never_asked() -> None:
    async def story() -> None:
        async with uvicorn_at(together=1, keeps_s=1) as server:
            fresh_reader, fresh_writer = await asyncio.open_connection("127.0.0.1", port_of(server))
            asked_reader, asked_writer = await asyncio.open_connection("127.0.0.1", port_of(server))
            asked_writer.write(ASKED)
            assert (await asked_reader.read()).endswith(BODY)  # up to its end, which comes a second after the reply
            fresh_writer.write(ASKED)
            assert (await fresh_reader.readuntil(BODY)).startswith(b"HTTP/1.1 200 OK")
            for writer in (asked_writer, fresh_writer):
                writer.close()

    asyncio.run(story())


@contextlib.asynccontextmanager
async def uvicorn_at(together: int = CROWD, keeps_s: int = 5) -> AsyncIterator[uvicorn.Server]:
    """A real uvicorn that answers so many requests at once, and none before, and keeps connections for so long."""
    barrier = asyncio.Barrier(together)

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        await barrier.wait()
        headers = [(b"content-length", b"%d" % len(BODY)), (b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": BODY})

    server = uvicorn.Server(uvicorn.Config(answer, port=0, timeout_keep_alive=keeps_s, log_level="warning", lifespan="off"))
    served = asyncio.ensure_future(server.serve())
    try:
        await until(lambda: server.started)
        yield server
    finally:
        server.should_exit = True
        await served


def port_of(server: uvicorn.Server) -> int:
    port = server.servers[0].sockets[0].getsockname()[1]
    assert isinstance(port, int)
    return port
