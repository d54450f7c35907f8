"""One picture for all open pages, in pieces: made while somebody looks, and a reader that does not keep up is dropped."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, MutableMapping
from typing import Any

import msgspec
import pytest

from stoker.records.dashboard import Card, DaemonCard, Deeds, MachineCard, Shown
from stoker.web.events import BEGIN, EventStream
from stoker.web.feed import Feed

DEEDS = Deeds(None, None, None, None, None)
MACHINE = MachineCard(total_bytes=8, available_bytes=4)
FIRST = Shown(DaemonCard("1", 0.0, "http://x", 5), MACHINE, (Card("a", "m", "e", "READY", 1.0, "why", DEEDS),), (), (), None)


class Look:
    """Shows what it is told to, and counts how often it was asked."""

    def __init__(self) -> None:
        self.shown = FIRST
        self.count = 0

    async def __call__(self) -> Shown:
        self.count += 1
        await asyncio.sleep(0)
        return self.shown


async def read(events: AsyncGenerator[bytes]) -> Any:
    """Returns the next event's data."""
    async with asyncio.timeout(10):
        event = await anext(events)
    assert event.startswith(b"data: ")
    assert event.endswith(b"\n\n")
    assert event.count(b"\n") == 2
    return json.loads(event[6:])


def test_everything_comes_first_and_then_what_changed() -> None:
    async def story() -> None:
        look = Look()
        events = Feed(look).follow()
        told = await read(events)
        assert told["whole"]
        names = {"daemon", "machine", "alerts", "lost", "switch", "fix", "service/a"}
        assert set(told["pieces"]) == set(told["names"]) == names
        card = msgspec.structs.replace(FIRST.services[0], state="STOPPED")
        look.shown = msgspec.structs.replace(FIRST, services=(card,))
        told = await read(events)
        assert (told["whole"], list(told["pieces"]), told["pieces"]["service/a"]["state"]) == (
            False,
            ["service/a"],
            "STOPPED",
        )
        look.shown = msgspec.structs.replace(FIRST, services=())
        told = await read(events)
        assert (told["pieces"], "service/a" in told["names"]) == ({}, False)

    asyncio.run(story())


def test_twenty_pages_are_shown_one_picture() -> None:
    async def story() -> None:
        look = Look()
        feed = Feed(look)
        first = await asyncio.gather(*(read(feed.follow()) for _ in range(20)))
        assert look.count == 1
        assert all(told == first[0] for told in first)

    asyncio.run(story())


def test_nothing_is_looked_at_while_nobody_looks() -> None:
    async def story() -> None:
        look = Look()
        events = Feed(look).follow()
        await read(events)
        await events.aclose()
        assert asyncio.all_tasks() == {asyncio.current_task()}  # nobody is left who could look
        assert look.count == 1

    asyncio.run(story())


def test_who_comes_late_is_told_everything() -> None:
    async def story() -> None:
        look = Look()
        feed = Feed(look)
        await read(feed.follow())
        look.shown = msgspec.structs.replace(FIRST, lost=("x",))
        early, late = feed.follow(), feed.follow()
        await read(early)
        assert (await read(late))["whole"]

    asyncio.run(story())


# The reply.


class Client:
    """What stands for a client: it leaves when it is told to, and takes so many pieces before it reads no more."""

    def __init__(self, takes: int) -> None:
        self.left, self.pieces = asyncio.Event(), list[bytes]()
        self.takes, self.is_whole = takes, False

    async def receive(self) -> MutableMapping[str, Any]:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            return
        if len(self.pieces) >= self.takes:
            await asyncio.Event().wait()
        self.pieces.append(message["body"])
        self.is_whole = not message.get("more_body", False)


async def count(closed: list[str], most: int | None = None) -> AsyncGenerator[bytes]:
    """Yields numbers; says when it was closed."""
    at = 0
    try:
        while most is None or at < most:
            yield b"%d" % at
            at += 1
            await asyncio.sleep(0)
    finally:
        closed.append("closed")


@pytest.mark.parametrize("leaves", [True, False])
def test_who_leaves_or_does_not_read_is_let_go(leaves: bool) -> None:
    async def story() -> None:
        closed: list[str] = []
        client = Client(takes=10**9 if leaves else 3)
        stream = EventStream(count(closed), slow_s=30.0 if leaves else 0.01)
        async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
            answering = tasks.create_task(stream({}, client.receive, client.send))
            while len(client.pieces) < 3:
                await asyncio.sleep(0)
            if leaves:
                client.left.set()
            await answering
        assert client.pieces[:3] == [BEGIN, b"0", b"1"]
        assert not client.is_whole
        assert closed == ["closed"]

    asyncio.run(story())


def test_events_that_end_end_the_reply() -> None:
    async def story() -> None:
        closed: list[str] = []
        client = Client(takes=100)
        async with asyncio.timeout(10):
            await EventStream(count(closed, most=2))({}, client.receive, client.send)
        assert (client.pieces, client.is_whole) == ([BEGIN, b"0", b"1", b""], True)

    asyncio.run(story())
