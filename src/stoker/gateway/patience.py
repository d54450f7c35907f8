"""Waits with a client for a service that is being started, and keeps its connection alive meanwhile."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine

from stoker.gateway.directory import Entry
from stoker.gateway.exchange import Exchange
from stoker.gateway.on_demand import name_service
from stoker.gateway.refusals import refuse

WAIT_HEADER = b"x-stoker-wait"
SECONDS = re.compile(rb"\d{1,9}(\.\d{0,9})?|\.\d{1,9}")  # float() takes nan, inf, 1_0 and spaces, too


def wait_limit_s(exchange: Exchange, entry: Entry) -> float | None:
    """Returns how long a client waits for a start: what its `x-stoker-wait` says in seconds, at most what is allowed.

    Answers 400 and returns None where that is no such number.
    """
    said, most_s = exchange.request.header(WAIT_HEADER), entry.limits.wait_s
    if said is None:
        return most_s
    if SECONDS.fullmatch(said) is None:
        message = "`x-stoker-wait` is how many seconds to wait for a start: a number such as 30 or 0.5, or 0 for none."
        refuse(exchange, 400, "invalid_wait", message, headers=name_service(entry))
        return None
    return min(most_s, float(said))


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
