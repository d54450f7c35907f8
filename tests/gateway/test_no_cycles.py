"""Requests and connections leave nothing behind that only the collector of cycles could free: it runs seldom on purpose."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator

import pytest

from door_stage import Answer, Engine, Stage, events, json_answer, raw, run, until

TIMES = 5
EVENT = b'data: {"model":"m","choices":[{"delta":{"content":"a"}}]}\n\n'
Play = Callable[[Stage], Awaitable[None]]


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Lets nothing be collected by chance."""
    gc.disable()
    yield
    gc.enable()


def living() -> Counter[str]:
    """Returns how many objects of the gateway's there are."""
    kinds = (type(one) for one in gc.get_objects())
    return Counter(kind.__qualname__ for kind in kinds if str(kind.__module__).startswith("stoker.gateway"))


async def asked(stage: Stage) -> None:
    client = await stage.chat(stream=True)
    await client.read_answer()
    await close(stage, client.writer)


async def broke(stage: Stage) -> None:
    client = await stage.chat(stream=True)
    await client.read_answer(breaks=True)
    await close(stage, client.writer)


async def left(stage: Stage) -> None:
    client = await stage.chat(stream=True)
    await client.reader.readuntil(b'"a"')
    await close(stage, client.writer)


async def refused(stage: Stage) -> None:
    client = await stage.request(b"POST", b"/v1/chat/completions", body=b"{}")
    await client.read_answer()
    await close(stage, client.writer)


async def broken(stage: Stage) -> None:
    client = await stage.connect()
    client.send(b"nonsense\r\n\r\n")
    await client.read_answer()
    await close(stage, client.writer)


async def close(stage: Stage, writer: asyncio.StreamWriter) -> None:
    """Closes, and waits until the door has seen it."""
    writer.transport.abort()
    await until(lambda: not stage.door.serving.in_flight("chat"))


async def endless(writer: asyncio.StreamWriter) -> None:
    await events(EVENT, ends=False)(writer)
    while True:
        writer.write(b"%x\r\n%s\r\n" % (len(EVENT), EVENT))
        await writer.drain()  # raises once nobody listens
        await asyncio.sleep(0)


CASES: list[tuple[Answer, Play]] = [
    (events(EVENT), asked),
    (json_answer(b'{"model": "m"}'), asked),
    (endless, left),
    (raw(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n5\r\nda"), broke),
    (raw(b"nonsense\r\n\r\n"), asked),
    (json_answer(b"{}"), refused),
    (json_answer(b"{}"), broken),
]


@pytest.mark.parametrize(("answer", "play"), CASES)
@pytest.mark.usefixtures("no_collector")
def test_what_ended_is_gone_at_once(answer: Answer, play: Play) -> None:
    async def story(stage: Stage) -> None:
        await play(stage)  # what is made once
        before = living()
        for _ in range(TIMES):
            await play(stage)
        stage.forget_clients()
        await until(lambda: living() <= before)  # rounds of the event loop, in which what was closed is let go

    run(Engine(answer), story)
