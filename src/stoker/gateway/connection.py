"""One client's connection: parses requests with limits, hands them on one at a time, and writes what is replied."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, cast
from urllib.parse import unquote

import httptools

from stoker.gateway.exchange import Exchange, Headers, Request
from stoker.gateway.refusals import refuse

HEAD_LIMIT_BYTES = 64 * 1024
IDLE_LIMIT_S = 75.0
BODY_BYTES_PER_S = 8 * 1024  # what a body's sender may take longer than its limit for, that a slow line is no attack
TICKS = 10  # looks at the clock within the shortest limit; a timer for every request would cost more than its parsing
LINGER_S = 5.0
LINGER_BYTES = 256 * 1024**2
WRITE_BUFFER_BYTES = 64 * 1024
FRAMING = frozenset({b"content-length", b"transfer-encoding"})


class Limits(NamedTuple):
    """How much and how long a client may take; a body that comes at `BODY_BYTES_PER_S` may take longer than `body_s`."""

    body_bytes: int
    head_s: float
    body_s: float


class ClientConnection(asyncio.Protocol):
    """Speaks HTTP/1.1 with one client; `handle` is called with each whole request."""

    def __init__(
        self, handle: Callable[[Exchange], None], limits: Limits, register: Callable[[ClientConnection, bool], None]
    ) -> None:
        self._handle = handle
        self._limits = limits
        self._register = register
        self._loop = asyncio.get_running_loop()
        self._tick_s = min(limits.head_s, limits.body_s) / TICKS
        self._timer: asyncio.TimerHandle | None = None
        self._deadline: float | None = None
        self._waiting: deque[Request | _Refused] = deque()
        self._exchange: Exchange | None = None
        self._ignored_bytes: int | None = None
        self._paused = False
        self._parser = httptools.HttpRequestParser(self)
        self._in_message = False
        self._idle_bytes = 0
        self._clear()

    def _clear(self) -> None:
        self._in_body = False
        self._url = b""
        self._headers: Headers = []
        self._body = bytearray()

    # What the event loop tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begins to wait for a request."""
        self._transport = cast(asyncio.Transport, transport)
        self.write = self._transport.write
        self._transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        self._register(self, True)
        self._limit(self._limits.head_s)

    def data_received(self, data: bytes) -> None:
        """Parses what came; what is malformed or too large is refused, what follows a last request is ignored."""
        if self._ignored_bytes is not None:
            if self._exchange is not None and self._exchange.on_bytes is not None:
                self._exchange.on_bytes(data)
            else:
                self._ignore(len(data))
            return
        self._idle_bytes += len(data)  # set to 0 by whatever the parser finds in it
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            # The request stands, the offer is passed over (RFC 9110, 7.8): Java's client and curl --http2 make it.
            if self._in_message:
                self._read_body_after_offer(data[offer.args[0] :])
        except httptools.HttpParserError as problem:
            if self._ignored_bytes is None:
                malformed = _Refused(400, "malformed_request", f"This is not an HTTP/1.1 request: {problem}.")
                self._refuse(problem.__context__ if isinstance(problem.__context__, _Refused) else malformed)
        else:
            if self._idle_bytes > HEAD_LIMIT_BYTES:  # a head, a trailer or a chunk's extension that does not end
                self._refuse(_head_too_large())

    @property
    def peer(self) -> str:
        """The client's address; empty where there is none."""
        name = self._transport.get_extra_info("peername")
        return str(name[0]) if isinstance(name, tuple) else ""

    def _read_body_after_offer(self, rest: bytes) -> None:
        """Reads the body that httptools leaves alone where a request offers to change the protocol."""
        framing = (b"%s: %s\r\n" % (name, value) for name, value in self._headers if name in FRAMING)
        method, version = self._parser.get_method(), self._parser.get_http_version().encode()
        self._parser = httptools.HttpRequestParser(_BodyOnly(self))
        head = b"%s / HTTP/%s\r\nconnection: close\r\n%s\r\n" % (method, version, b"".join(framing))
        self.data_received(head + rest)

    def eof_received(self) -> bool:
        """Closes: a client that half-closes has left."""
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """Tells whoever writes the reply that the client has left."""
        self._deadline = None
        self._disarm()
        self._register(self, False)
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

    # What the parser tells.

    def on_message_begin(self) -> None:
        """A request begins."""
        self._clear()
        self._in_message = True
        self._idle_bytes = 0
        self._limit(self._limits.head_s)

    def on_url(self, url: bytes) -> None:
        """A part of the request's target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header; a trailer is dropped, since it could pass for one (RFC 9110, 6.5.1)."""
        if not self._in_body:
            self._headers.append((name.lower(), value.rstrip(b" \t")))  # llhttp leaves the space after a value in it

    def on_headers_complete(self) -> None:
        """Refuses a body that says it will be too large, before it is sent."""
        self._in_body = True
        self._idle_bytes = 0
        self._check_head()
        if len(self._url) + sum(len(name) + len(value) + 4 for name, value in self._headers) > HEAD_LIMIT_BYTES:
            raise _head_too_large()
        self._limit(self._limits.body_s)
        length = next((value for name, value in self._headers if name == b"content-length"), b"0")
        if int(length) > self._limits.body_bytes:
            raise self._too_large()
        expects = any(name == b"expect" and value.lower() == b"100-continue" for name, value in self._headers)
        if expects and self._exchange is None:  # never in the middle of another reply
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _check_head(self) -> None:
        """Refuses what llhttp takes: HTTP/0.9 with a head, tunnels, and other encodings than the engine would be told of."""
        if self._parser.get_http_version() not in ("1.0", "1.1"):
            raise _Refused(400, "malformed_request", "Only HTTP/1.1 and HTTP/1.0 are spoken here.")
        if self._parser.get_method() == b"CONNECT":
            raise _Refused(400, "malformed_request", "This is no proxy: CONNECT is not spoken here.")
        encodings = [value.lower() for name, value in self._headers if name == b"transfer-encoding"]
        if encodings not in ([], [b"chunked"]):
            raise _Refused(400, "malformed_request", "The only Transfer-Encoding that is understood here is `chunked`.")

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        self._idle_bytes = 0
        self._body += body
        if len(self._body) > self._limits.body_bytes:
            raise self._too_large()
        if self._deadline is not None:
            self._deadline += len(body) / BODY_BYTES_PER_S

    def _too_large(self) -> _Refused:
        limit_mib = self._limits.body_bytes / 1024**2
        message = f"The request's body is over {limit_mib:.0f} MiB (gateway.body_limit_bytes in stoker.toml)."
        return _Refused(413, "body_too_large", message)

    def on_message_complete(self) -> None:
        """A whole request is there; it waits for its turn if another is being answered."""
        if self._has_body_after_offer():
            return
        self._deadline = None
        self._in_message = False
        self._idle_bytes = 0
        request = self._request()
        if not request.keep_alive:
            self._ignored_bytes = 0
        self._line_up(request)

    def _has_body_after_offer(self) -> bool:
        return self._parser.should_upgrade() and any(name in FRAMING for name, _ in self._headers)

    def _line_up(self, item: Request | _Refused) -> None:
        if self._transport.is_closing():  # the answer before was the last one, and this came in the same piece
            return
        self._waiting.append(item)
        if self._exchange is None:
            self._next()
        else:
            self._transport.pause_reading()

    def _request(self) -> Request:
        target, _, query = self._url.partition(b"?")
        return Request(
            method=self._parser.get_method().decode(),
            path=unquote(target.decode("latin-1")),
            query=query,
            headers=self._headers,
            body=self._body,
            http_version=self._parser.get_http_version(),
            keep_alive=self._parser.should_keep_alive() and not self._parser.should_upgrade(),
            target=self._url,
            is_websocket=self._offers_websocket(),
        )

    def _offers_websocket(self) -> bool:
        # Any other method is no offer (RFC 6455, 4.1), so that none reaches the paths that only take POST.
        offered = {value.lower() for name, value in self._headers if name == b"upgrade"}
        is_get = self._parser.get_method() == b"GET" and self._parser.get_http_version() == "1.1"
        return is_get and self._parser.should_upgrade() and b"websocket" in offered

    # What is replied.

    def _next(self) -> None:
        item = self._waiting.popleft()
        if isinstance(item, _Refused):
            self._answer_refusal(item)
            return
        exchange = self._exchange = Exchange(item, self, [])
        if self._paused:
            exchange.pause()
        self._handle(exchange)

    def finish(self, keep_alive: bool) -> None:
        """Ends a reply and turns to the next request, or closes."""
        self._exchange = None
        if not keep_alive:
            self._transport.close()
        elif self._waiting:
            self._loop.call_soon(self._next_if_idle)
        else:
            self._transport.resume_reading()
            self._limit(self._limits.body_s if self._in_message else IDLE_LIMIT_S)

    def _next_if_idle(self) -> None:
        if self._exchange is None and self._waiting and not self._transport.is_closing():
            self._next()

    def hold(self, is_full: bool) -> None:
        """Reads no more from the client until there is room for it again."""
        (self._transport.pause_reading if is_full else self._transport.resume_reading)()

    def abort(self) -> None:
        """Cuts the connection."""
        self._exchange = None
        self._transport.abort()

    def close_when_idle(self) -> None:
        """Closes now, or after the reply that is being written."""
        if self._exchange is None:
            self._transport.close()

    def cut(self) -> None:
        """Closes now; a reply that is being written is not whole."""
        self._transport.abort()

    def _refuse(self, refusal: _Refused) -> None:
        """Answers a request that could not be read, when its turn comes; nothing is read after it."""
        self._deadline = None
        self._ignored_bytes = 0
        self._line_up(refusal)

    def _answer_refusal(self, refusal: _Refused) -> None:
        """Answers, then reads on for a while: a reset would swallow the answer."""
        self._transport.resume_reading()
        request = Request("GET", "", b"", [], b"", "1.1", keep_alive=False)
        refuse(Exchange(request, _Last(self._transport), []), refusal.status, refusal.code, refusal.message)
        self._disarm()
        self._timer = self._loop.call_later(LINGER_S, self._transport.abort)

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
            self._refuse(_Refused(408, "request_too_slow", "The rest of the request did not come in time."))

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _BodyOnly:
    """What a parser tells that reads a body whose head was read before."""

    def __init__(self, connection: ClientConnection) -> None:
        self.on_body = connection.on_body
        self.on_message_complete = connection.on_message_complete


class _Last:
    """The wire of a last reply: the connection lingers instead of closing."""

    peer = ""

    def __init__(self, transport: asyncio.Transport) -> None:
        self.write = transport.write

    def finish(self, keep_alive: bool) -> None:
        """Leaves the closing to the connection."""

    def hold(self, is_full: bool) -> None:
        """Leaves what comes to the connection."""

    def abort(self) -> None:
        """Leaves the closing to the connection."""


def _head_too_large() -> _Refused:
    return _Refused(431, "head_too_large", f"The request's head is over {HEAD_LIMIT_BYTES // 1024} KiB.")


class _Refused(Exception):
    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
