"""A client's connection that reads stamped streams of the mock engine, one after another."""

from __future__ import annotations

import asyncio
import re
import time
from array import array
from typing import cast

import httptools

STAMP = re.compile(rb"#(\d{6}):(\d{19}):(\d{19});")
STAMP_BYTES = 48


class Broken(Exception):
    """One reply did not arrive whole; the text says how."""


class StreamConnection(asyncio.Protocol):
    """Asks, and resolves a future once the reply is whole; adds nanoseconds to the given arrays."""

    def __init__(self, transit_ns: array[int], ttft_ns: array[int]) -> None:
        self._transit_ns, self._ttft_ns = transit_ns, ttft_ns
        self._reply: asyncio.Future[None] | None = None
        self.is_open = False

    def ask(self, raw: bytes, chunks: int) -> asyncio.Future[None]:
        """Sends a request whose reply has so many chunks; the future raises Broken where it does not arrive so."""
        self._parser = httptools.HttpResponseParser(self)
        self._wanted, self._number, self._carry, self._saw_done = chunks, 0, b"", False
        self._reply = asyncio.get_running_loop().create_future()
        self._sent_ns = time.monotonic_ns()
        self._transport.write(raw)
        return self._reply

    def drop(self) -> None:
        """Leaves, with a reset."""
        self._transport.abort()

    # What the event loop tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """May ask now."""
        self._transport, self.is_open = cast(asyncio.Transport, transport), True

    def connection_lost(self, error: Exception | None) -> None:
        """A reply that is under way is not whole."""
        self.is_open = False
        self._fail("closed early" if error is None else type(error).__name__)

    def data_received(self, data: bytes) -> None:
        """Notes the time, and parses."""
        self._read_ns = time.monotonic_ns()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as problem:
            self._fail(type(problem).__name__)
            self._transport.close()

    # What the parser tells.

    def on_body(self, data: bytes) -> None:
        """Reads the stamps; one may be cut in two."""
        data = self._carry + data if self._carry else data
        end = 0
        for found in STAMP.finditer(data):
            self._take(int(found[1]), int(found[2]), int(found[3]))
            end = found.end()
        self._saw_done = self._saw_done or b"[DONE]" in data
        self._carry = data[max(end, len(data) - STAMP_BYTES) :]

    def _take(self, number: int, received_ns: int, sent_ns: int) -> None:
        if number != self._number:
            self._fail("chunk lost or out of order")
        if number == 0:
            self._ttft_ns.append((self._read_ns - self._sent_ns) - (sent_ns - received_ns))
        self._transit_ns.append(self._read_ns - sent_ns)
        self._number += 1

    def on_message_complete(self) -> None:
        """Judges the reply."""
        if not self._parser.should_keep_alive():
            self.is_open = False
            self._transport.close()
        status = self._parser.get_status_code()
        if status != 200:
            self._fail(f"status {status}")
        elif self._number != self._wanted:
            self._fail(f"{'short' if self._number < self._wanted else 'long'} reply")
        elif not self._saw_done:
            self._fail("no [DONE]")
        elif self._reply is not None and not self._reply.done():
            self._reply.set_result(None)

    def _fail(self, why: str) -> None:
        if self._reply is not None and not self._reply.done():
            self._reply.set_exception(Broken(why))
