"""Server-sent events: a reader that does not keep up is dropped; its browser comes back and is told everything anew."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.types import Receive, Scope, Send

from stoker.gateway.exchange import EVENTS

SLOW_S = 10.0  # how long one event may take to leave; what is not read by then lies in the kernel's buffers alone
# So much of an event waits in the daemon for a reader; the server takes whatever it is given, and a copy for each reader.
PIECE_BYTES = 65536
BEGIN = b"retry: 1000\n\n"  # milliseconds until a page that lost the daemon asks again
HEADERS = [(b"content-type", EVENTS), (b"cache-control", b"no-store")]


class EventStream:
    """A reply made of events, until they end or the client leaves."""

    def __init__(self, events: AsyncGenerator[bytes], slow_s: float = SLOW_S) -> None:
        self._events = events
        self._slow_s = slow_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers; returns without the reply's end where the client is too slow, so that the connection is cut."""
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        try:
            async with asyncio.TaskGroup() as tasks:
                leaving = tasks.create_task(_await_departure(receive))
                await self._send_all(send)
                leaving.cancel()
        except* (TimeoutError, _Left):
            pass  # nothing more is said

    async def _send_all(self, send: Send) -> None:
        await self._send(send, BEGIN)
        async with aclosing(self._events) as events:
            async for event in events:
                await self._send(send, event)
        await send({"type": "http.response.body", "body": b""})

    async def _send(self, send: Send, event: bytes) -> None:
        async with asyncio.timeout(self._slow_s):
            for at in range(0, len(event), PIECE_BYTES):
                await send({"type": "http.response.body", "body": event[at : at + PIECE_BYTES], "more_body": True})


class _Left(Exception):
    """The client has left."""


async def _await_departure(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    raise _Left
