"""Connections to engines: which are used again, which are not, and that no request is lost to one that ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterator

import pytest

from door_stage import Answer, Stage, act, events, json_answer, until
from gateway_client import Client
from kept_engine import KeptEngine

BODY = b'{"model": "m"}'
OFTEN = 40
ROUNDS = 100  # of the event loop that all ends share: as much as fits into the buffers passes in fewer
LARGE_BYTES, STEP_BYTES = 8 * 2**20, 192 * 1024
DONE = b"data: [DONE]\n\n"
AGAIN = (
    b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer key\r\n"
    b"content-length: %d\r\n\r\n%s" % (len(BODY), BODY)
)


def raw(said: bytes) -> Answer:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(said)

    return answer


async def ask(stage: Stage) -> int:
    """Asks on a connection of its own; returns the status."""
    return (await (await stage.chat()).read_answer()).status


def test_a_connection_is_used_again_for_whole_replies_and_streams() -> None:
    engine = KeptEngine(json_answer(BODY), events(DONE), json_answer(BODY, status=429))

    async def story(stage: Stage) -> None:
        assert [await ask(stage) for _ in range(3)] == [200, 200, 429]

    act(Stage(engine, ()), story)
    assert engine.uses == [3]
    assert b"connection: keep-alive" in engine.asked[0][0]


def test_two_at_once_have_two_connections_and_the_next_two_use_them() -> None:
    engine = KeptEngine()

    async def story(stage: Stage) -> None:
        for _ in range(2):
            clients = [await stage.chat() for _ in range(2)]
            assert [(await client.read_answer()).status for client in clients] == [200, 200]

    act(Stage(engine, ()), story)
    assert sum(engine.uses) == 4
    assert len(engine.uses) <= 2


def test_an_engine_that_must_not_keep_any_gets_a_connection_for_each() -> None:
    engine = KeptEngine()
    stage = Stage(engine, ())
    stage.reuses = False

    async def story(_: Stage) -> None:
        assert [await ask(stage), await ask(stage)] == [200, 200]
        await until(lambda: engine.open == 0)

    act(stage, story)
    assert engine.uses == [1, 1]
    assert all(b"connection: close" in head for head, _ in engine.asked)


def test_a_reply_that_says_close_ends_its_connection() -> None:
    engine = KeptEngine(json_answer(BODY, b"connection: close"))

    async def story(stage: Stage) -> None:
        assert [await ask(stage), await ask(stage)] == [200, 200]

    act(Stage(engine, ()), story)
    assert engine.uses == [1, 1]


def test_a_reply_without_a_length_ends_with_its_connection_and_is_whole() -> None:
    engine = KeptEngine(raw(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\nall of it"), stays=False)

    async def story(stage: Stage) -> None:
        assert (await (await stage.chat()).read_answer()).body == b"all of it"
        assert await ask(stage) == 200

    act(Stage(engine, ()), story)
    assert engine.uses == [1, 1]


def test_an_engine_that_closes_after_each_reply_without_a_word_costs_no_request() -> None:
    engine = KeptEngine(stays=False)

    async def story(stage: Stage) -> None:
        client = await stage.chat()
        for _ in range(OFTEN):
            assert (await client.read_answer()).status == 200
            send_again(client)
        assert (await client.read_answer()).status == 200

    act(Stage(engine, ()), story)
    assert engine.uses == [1] * (OFTEN + 1)


def send_again(client: Client) -> None:
    client.send(AGAIN)


def test_a_connection_that_closes_in_the_moment_of_the_next_request_is_not_used_for_it() -> None:
    engine = KeptEngine()

    async def story(stage: Stage) -> None:
        client = await stage.chat()
        assert (await client.read_answer()).status == 200
        with own_socket(client.writer) as ours, own_socket(engine.writers[0]) as engines:
            ours.sendall(AGAIN)  # both before the event loop looks, and the request is what it sees first
            engines.shutdown(socket.SHUT_WR)
            assert (await client.read_answer()).status == 200

    act(Stage(engine, ()), story)
    assert engine.uses == [1, 1]


def own_socket(writer: asyncio.StreamWriter) -> socket.socket:
    """A socket of a stream that can be used without its event loop."""
    return socket.socket(fileno=os.dup(writer.get_extra_info("socket").fileno()))


def test_a_connection_that_the_engine_closes_while_idle_is_not_used_again() -> None:
    engine = KeptEngine()

    async def story(stage: Stage) -> None:
        assert await ask(stage) == 200
        engine.writers[0].close()
        assert await ask(stage) == 200

    act(Stage(engine, ()), story)
    assert engine.uses == [1, 1]


@pytest.mark.parametrize("with_the_reply", [True, False], ids=["with the reply", "later"])
def test_an_engine_that_speaks_unasked_is_dropped_and_nobody_gets_its_words(with_the_reply: bool) -> None:
    reply = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
    engine = KeptEngine(raw(reply + reply if with_the_reply else reply))

    async def story(stage: Stage) -> None:
        assert (await (await stage.chat()).read_answer()).body == b"{}"
        if not with_the_reply:
            engine.writers[0].write(reply)
            await until(lambda: engine.open == 0)
        assert (await (await stage.chat()).read_answer()).body == BODY

    act(Stage(engine, ()), story)
    assert engine.uses == [1, 1]


def test_nothing_is_kept_for_long() -> None:
    engine = KeptEngine()

    async def story(stage: Stage) -> None:
        assert await ask(stage) == 200
        assert engine.open == 1
        await until(lambda: engine.open == 0)

    act(Stage(engine, ()), story)


def test_a_reader_who_stalls_at_the_end_leaves_a_connection_that_works() -> None:
    # One of these sizes is read to its end just as the client's buffers are full.
    bodies = [b'{"model": "m", "x": "%s"}' % (b"x" * size) for size in range(0, LARGE_BYTES, STEP_BYTES)]
    engine = KeptEngine(*map(json_answer, bodies))

    async def story(stage: Stage) -> None:
        for body in bodies:
            client = await stage.chat()
            client.stop_reading()
            for _ in range(ROUNDS):
                await asyncio.sleep(0)
            client.read_on()
            assert len((await client.read_answer()).body) == len(body)
        assert await ask(stage) == 200

    act(Stage(engine, ()), story)
    assert sum(engine.uses) == len(bodies) + 1


def test_an_engine_that_cannot_be_reached_is_a_502_that_says_so() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound, and not listening

        async def story(stage: Stage) -> None:
            stage.engine_port = closed.getsockname()[1]
            answer = await (await stage.chat()).read_answer()
            assert (answer.status, answer.code) == (502, "engine_unreachable")

        act(Stage(KeptEngine(), ()), story)


def test_a_client_that_leaves_while_its_engine_is_connected_to_asks_nothing() -> None:
    engine = KeptEngine()

    async def story(stage: Stage) -> None:
        with full_listener() as port:
            real, stage.engine_port = stage.engine_port, port
            client = await stage.chat()
            await until(lambda: stage.door.serving.in_flight("chat") == 1)
            client.writer.transport.abort()
            await until(lambda: stage.door.serving.in_flight("chat") == 0)
            stage.engine_port = real
        assert await ask(stage) == 200

    act(Stage(engine, ()), story)
    assert engine.uses == [1]


@contextlib.contextmanager
def full_listener() -> Iterator[int]:
    """A port at which connecting takes for ever, for its backlog is full."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]
