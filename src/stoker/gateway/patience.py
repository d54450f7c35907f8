"""Waits with a client for a service that is being started, and keeps its connection alive meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

from stoker.gateway.directory import Entry
from stoker.gateway.exchange import Exchange, Request
from stoker.gateway.on_demand import name_service

WAIT_HEADER = b"x-stoker-wait"


def wait_limit_s(request: Request, most_s: float) -> float:
    """Returns how long a client waits for a start: what its `x-stoker-wait` says in seconds, at most what is allowed."""
    said = request.header(WAIT_HEADER)
    try:
        return most_s if said is None else max(0.0, min(most_s, float(said)))
    except ValueError:
        return most_s


class Patience:
    """One client that waits. A stream is told every so often how far the start is, in comments that clients pass over."""

    def __init__(self, exchange: Exchange, is_stream: bool, says_every_s: float, look: Callable[[], Entry]) -> None:
        self._exchange = exchange
        self._is_stream = is_stream
        self._says_every_s = says_every_s
        self._look = look

    async def during(self, start: Coroutine[None, None, None]) -> None:
        """Returns once the start is over, as it ends; raises what it raises. A client that leaves ends the waiting alone."""
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(start)
        left: asyncio.Future[None] = loop.create_future()
        self._exchange.on_gone = lambda: left.set_result(None)
        try:
            while not (task.done() or left.done()):
                await asyncio.wait((task, left), timeout=self._says_every_s, return_when=asyncio.FIRST_COMPLETED)
                if not (task.done() or left.done()) and self._is_stream:
                    entry = self._look()
                    self._exchange.say(_progress(entry), name_service(entry))
            if task.done():
                await task
        finally:
            task.cancel()


def _progress(entry: Entry) -> str:
    waits = f", waits for {entry.waits_for}" if entry.waits_for else ""
    expected = f"; a start takes about {entry.expected_s:.0f} s" if entry.expected_s is not None else ""
    return f"{entry.service} is {entry.state}: {entry.why}{waits}{expected}".replace("\r", " ").replace("\n", " ")
