"""Clients that ask one door for many streams at once, and keep every byte of each."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import NamedTuple

import httpx

from net_boxes import GATEWAY_PORT, Box, question

PATH, MODEL = "/v1/chat/completions", "echo"


class Told(NamedTuple):
    """What came of one stream; `at_s` is when it ended."""

    headers: httpx.Headers
    body: bytes
    is_whole: bool
    at_s: float

    @property
    def box(self) -> str:
        return str(self.headers["x-stoker-box"])


class Talk:
    """One stream: asks, says when it has begun, and reads on once it may."""

    def __init__(
        self, client: httpx.AsyncClient, said: str, headers: dict[str, str], reads_on: asyncio.Event | None
    ) -> None:
        self._client, self._headers, self._reads_on = client, headers, reads_on
        self._body = {**question(MODEL, stream=True), "messages": [{"role": "user", "content": said}]}
        self.begun = asyncio.Event()

    async def run(self) -> Told:
        """Returns what came, to its end, whole or not."""
        pieces, is_whole = [], False
        async with self._client.stream("POST", PATH, json=self._body, headers=self._headers) as reply:
            with contextlib.suppress(httpx.RemoteProtocolError):
                async for piece in reply.aiter_raw():
                    pieces.append(piece)
                    self.begun.set()
                    if self._reads_on is not None:
                        await self._reads_on.wait()
                is_whole = True
        assert reply.status_code == 200, pieces
        return Told(reply.headers, b"".join(pieces), is_whole, time.monotonic())


class Clients:
    """The clients of one door."""

    def __init__(self, client: httpx.AsyncClient, tasks: asyncio.TaskGroup) -> None:
        self.client, self._tasks = client, tasks

    async def begin(
        self, saids: Iterable[str], headers: dict[str, str] | None = None, reads_on: asyncio.Event | None = None
    ) -> list[asyncio.Task[Told]]:
        """Asks all at once, and returns once something of each has come; without headers each has an affinity of its own."""
        talks = [Talk(self.client, said, headers or {"x-stoker-affinity": said[:40]}, reads_on) for said in saids]
        running = [self._tasks.create_task(talk.run()) for talk in talks]
        await asyncio.gather(*(talk.begun.wait() for talk in talks))
        return running


@contextlib.asynccontextmanager
async def clients_of(box: Box) -> AsyncIterator[Clients]:
    """Clients on a box, of its own door; this thread is in its network."""
    headers = {"authorization": f"Bearer {box.paths.key_file.read_text().strip()}"}
    async with (
        asyncio.timeout(60.0),
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{GATEWAY_PORT}", headers=headers, timeout=30.0) as client,
        asyncio.TaskGroup() as tasks,
    ):
        yield Clients(client, tasks)


def at(box: Box, story: Callable[[Clients], Awaitable[None]]) -> None:
    """Plays a story among the clients of a box."""

    async def play() -> None:
        async with clients_of(box) as clients:
            await story(clients)

    with box.inside():
        asyncio.run(play())
