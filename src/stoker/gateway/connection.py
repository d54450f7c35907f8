"""One client's connection: hands its requests on one at a time within limits, and writes what is replied."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import deque
from typing import NamedTuple, Protocol, cast

from stoker.gateway.exchange import Exchange, Headers, Request
from stoker.gateway.keyring import Denial
from stoker.gateway.last_wire import LastWire
from stoker.gateway.refusals import BAD_REQUEST, end_failed
from stoker.gateway.request_reader import BadRequest, RequestReader

IDLE_LIMIT_S = 75.0
BODY_BYTES_PER_S = 8 * 1024  # what a body's sender may take longer than its limit for, that a slow line is no attack
TICKS = 10  # looks at the clock within the shortest limit; a timer for every request would cost more than its parsing
LINGER_S = 5.0
LINGER_BYTES = 256 * 1024**2
RESET = struct.pack("ii", 1, 0)  # what is not sent yet is not sent any more
WRITE_BUFFER_BYTES = 64 * 1024
TOO_SLOW = Denial(408, "request_too_slow", "The rest of the request did not come in time.", BAD_REQUEST)


class Limits(NamedTuple):
    """How much and how long a client may take; a body that comes at `BODY_BYTES_PER_S` may take longer than `body_s`."""

    body_bytes: int
    head_s: float
    body_s: float


class Keeper(Protocol):
    """Who answers what clients send."""

    def register(self, connection: ClientConnection, is_open: bool) -> None:
        """Learns that a connection begins or has ended."""

    def deny_stranger(self, headers: Headers, peer: str) -> Denial | None:
        """Returns why nobody reads a large body of whoever sent these headers; None where his key is good."""

    def handle(self, exchange: Exchange) -> None:
        """Answers a whole request."""

    def refuse_unread(self, exchange: Exchange, denial: Denial) -> None:
        """Answers a request that was not read to its end, or could not be."""


class _Unread(NamedTuple):
    """What was read of a request that is refused, and why."""

    request: Request
    denial: Denial


class ClientConnection(asyncio.Protocol):
    """Speaks HTTP/1.1 with one client, and hands each request to its keeper."""

    def __init__(self, keeper: Keeper, limits: Limits) -> None:
        self._keeper = keeper
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._tick_s = min(limits.head_s, limits.body_s) / TICKS
        self._timer: asyncio.TimerHandle | None = None
        self._deadline: float | None = None
        self._waiting: deque[Request | _Unread] = deque()
        self._exchange: Exchange | None = None
        self._ignored_bytes: int | None = None
        self._paused = False
        self._reader = RequestReader(self, limits.body_bytes)

    # What the event loop tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begins to wait for a request."""
        self._transport = cast(asyncio.Transport, transport)
        self.write = self._transport.write
        self._transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        self._keeper.register(self, True)
        self._limit(self._limits.head_s)

    def data_received(self, data: bytes) -> None:
        """Parses what came; what is malformed or too large is refused, what follows a last request is ignored."""
        if self._ignored_bytes is not None:
            if self._exchange is not None and self._exchange.on_bytes is not None:
                self._exchange.on_bytes(data)
            else:
                self._ignore(len(data))
            return
        try:
            self._reader.feed(data)
        except BadRequest as refusal:
            if self._ignored_bytes is None:
                self._refuse(refusal.denial)

    @property
    def peer(self) -> str:
        """The client's address; empty where there is none."""
        name = self._transport.get_extra_info("peername")
        return str(name[0]) if isinstance(name, tuple) else ""

    def eof_received(self) -> bool:
        """Closes: a client that half-closes has left."""
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """Tells whoever writes the reply that the client has left."""
        self._deadline = None
        self._disarm()
        self._keeper.register(self, False)
        self._waiting.clear()
        self._reader.close()
        if self._exchange is not None:
            self._exchange.gone()
            self._exchange = None

    def pause_writing(self) -> None:
        """The client reads more slowly than the engine writes."""
        self._paused = True
        if self._exchange is not None:
            self._exchange.pause()

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._paused = False
        if self._exchange is not None:
            self._exchange.resume()
        elif self._waiting:
            self._loop.call_soon(self._next_if_idle)

    # What the reader tells.

    def begun(self) -> None:
        """A request begins."""
        self._limit(self._limits.head_s)

    def large_body(self, headers: Headers) -> None:
        """Its body is larger than is read of everybody: only those with a good key may go on."""
        denial = self._keeper.deny_stranger(headers, self.peer)
        if denial is not None:
            raise BadRequest(*denial)

    def head_read(self, expects: bool) -> None:
        """Its head is there; a client that waits for a word to go on gets it, but never in the middle of another reply."""
        self._limit(self._limits.body_s)
        if expects and self._exchange is None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def body_read(self, size_bytes: int) -> None:
        """A piece of its body came, which buys time for the rest."""
        if self._deadline is not None:
            self._deadline += size_bytes / BODY_BYTES_PER_S

    def request_read(self, request: Request) -> None:
        """A whole request is there; it waits for its turn if another is being answered."""
        self._deadline = None
        if not request.keep_alive:
            self._ignored_bytes = 0
        self._line_up(request)

    def _line_up(self, item: Request | _Unread) -> None:
        if self._transport.is_closing():  # the answer before was the last one, and this came in the same piece
            return
        self._waiting.append(item)
        if self._exchange is None and not self._paused:
            self._next()
        else:
            self._transport.pause_reading()

    # What is replied.

    def _next(self) -> None:
        item = self._waiting.popleft()
        if isinstance(item, _Unread):
            self._answer_refusal(item)
            return
        exchange = self._exchange = Exchange(item, self, [])
        try:
            self._keeper.handle(exchange)
        except Exception:  # noqa: BLE001 - it is logged; else the connection would wait for ever for an answer that nobody writes
            end_failed(exchange)

    def finish(self, keep_alive: bool) -> None:
        """Ends a reply and turns to the next request, or closes."""
        self._exchange = None
        if not keep_alive:
            self._transport.close()
        elif self._waiting:
            self._loop.call_soon(self._next_if_idle)
        else:
            self._transport.resume_reading()
            self._limit(self._limits.body_s if self._reader.in_message else IDLE_LIMIT_S)

    def _next_if_idle(self) -> None:
        # Who reads no answers is answered no more: they would pile up here.
        if self._exchange is None and self._waiting and not self._paused and not self._transport.is_closing():
            self._next()

    def break_off(self) -> None:
        """Closes once what was written is on its way: what came unread meanwhile is read, since a reset would swallow it."""
        self._exchange = None
        self._waiting.clear()
        self._ignored_bytes = self._ignored_bytes or 0
        self._linger(IDLE_LIMIT_S)
        if self._transport.is_closing():  # the client left just now, and this has not been told yet
            return
        if self._transport.can_write_eof():
            self._transport.resume_reading()
            self._transport.write_eof()
        else:  # TLS says its own goodbye, and reads on meanwhile
            self._transport.close()

    def hold(self, is_full: bool) -> None:
        """Reads no more from the client until there is room for it again."""
        (self._transport.pause_reading if is_full else self._transport.resume_reading)()

    def abort(self) -> None:
        """Cuts the connection."""
        self._exchange = None
        self._reset()

    def close_when_idle(self) -> None:
        """Closes now, or after the reply that is being written."""
        if self._exchange is None:
            self._transport.close()

    def cut(self) -> None:
        """Closes now; a reply that is being written is not whole."""
        if self._exchange is None:
            self._transport.abort()
        else:
            self._reset()

    def _reset(self) -> None:
        """Cuts with a reset: of a reply that ends with its connection, nothing else tells that it is not whole."""
        ours = self._transport.get_extra_info("socket")
        if ours is not None and ours.fileno() >= 0:  # TLS has none any more where the client has just left
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self._transport.abort()

    def _refuse(self, denial: Denial) -> None:
        """Answers a request that could not be read, when its turn comes; nothing is read after it."""
        self._deadline = None
        self._ignored_bytes = 0
        self._line_up(_Unread(self._reader.give_up(), denial))

    def _answer_refusal(self, unread: _Unread) -> None:
        """Answers, then reads on for a while: a reset would swallow the answer."""
        self._transport.resume_reading()
        self._keeper.refuse_unread(Exchange(unread.request, LastWire(self._transport, self.peer), []), unread.denial)
        self._linger(LINGER_S)

    def _linger(self, limit_s: float) -> None:
        self._disarm()
        self._timer = self._loop.call_later(limit_s, self._transport.abort)

    def _ignore(self, size_bytes: int) -> None:
        self._ignored_bytes = (self._ignored_bytes or 0) + size_bytes
        if self._ignored_bytes > LINGER_BYTES:
            self._transport.abort()

    def _limit(self, limit_s: float) -> None:
        """Limits how long the client may take for what comes next, unless it is us who do not read on."""
        if not self._waiting:
            self._deadline = self._loop.time() + limit_s
            if self._timer is None:
                self._timer = self._loop.call_later(self._tick_s, self._tick)

    def _tick(self) -> None:
        self._timer = None
        if self._deadline is None:
            return
        left_s = self._deadline - self._loop.time()
        if left_s > 0:
            self._timer = self._loop.call_later(min(self._tick_s, left_s + 0.001), self._tick)
        elif self._exchange is None:
            self._transport.close()
        else:
            self._refuse(TOO_SLOW)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
