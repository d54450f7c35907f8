"""Lets an ASGI application answer behind the same door: the control API and the dashboard."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from stoker.gateway.exchange import Exchange

Message = MutableMapping[str, Any]
App = Callable[[Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]]


async def run_app(app: App, exchange: Exchange) -> None:
    """Runs the application for one request; a client that leaves is told to it as `http.disconnect`."""
    bridge = _Bridge(exchange)
    await app(_scope(exchange), bridge.receive, bridge.send)
    if not exchange.done:  # it returned without an answer, or in the middle of one
        exchange.abort()


def _scope(exchange: Exchange) -> Message:
    request = exchange.request
    return {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": request.http_version, "method": request.method,
        "scheme": "http", "path": request.path, "raw_path": request.path.encode(), "query_string": request.query,
        "root_path": "", "headers": request.headers, "client": None, "server": None,
    }  # fmt: skip


class _Bridge:
    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._sent_body = False
        self._gone = asyncio.Event()
        self._writable = asyncio.Event()
        if not exchange.paused:
            self._writable.set()
        exchange.on_gone = self._leave
        exchange.on_pause = self._writable.clear
        exchange.on_resume = self._writable.set
        if exchange.done:  # the client left before the application's turn came
            self._leave()

    def _leave(self) -> None:
        self._gone.set()
        self._writable.set()

    async def receive(self) -> Message:
        if not self._sent_body:
            self._sent_body = True
            return {"type": "http.request", "body": self._exchange.request.body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if self._exchange.done:
            await asyncio.sleep(0)  # lets a task that listens for the disconnect end this one
            return
        if message["type"] == "http.response.start":
            headers = [(name.lower(), value) for name, value in message.get("headers", [])]
            lengths = [int(value) for name, value in headers if name == b"content-length"]
            kept = [pair for pair in headers if pair[0] != b"content-length"]
            self._exchange.start(message["status"], kept, lengths[0] if lengths else None)
            return
        await self._writable.wait()
        self._exchange.write(message.get("body", b""))
        if not message.get("more_body", False):
            self._exchange.end()
            self._gone.set()
