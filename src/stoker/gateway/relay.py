"""Carries one request to an engine and its reply back, byte for byte."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from stoker.gateway.exchange import Exchange, Headers, Request
from stoker.gateway.framing import BrokenFraming, ChunkedBody, OpenBody
from stoker.gateway.pool import EngineConnection, Pool
from stoker.gateway.refusals import error_event, refuse
from stoker.gateway.reply_head import HOP_BY_HOP, SWITCHED, ReplyHead, read_head, split_head
from stoker.records import Endpoint

INTERIM = frozenset(range(100, 200)) - {SWITCHED}
OPENING_BYTES, TAIL_BYTES = 2 * 1024, 4 * 1024
WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS", "DELETE"})  # as a rule; a length of 0 would say nothing new
NOT_FORWARDED = HOP_BY_HOP | {
    b"host", b"authorization", b"content-length", b"expect", b"cookie", b"origin", b"x-api-key",
}  # fmt: skip


class Relay:
    """One request under way to an engine. `silence_limit_s` limits how long the engine may say nothing.

    `heard_at` is when it last said something, and `first_at` when its reply's body began, on the event loop's clock;
    `opening` holds the first bytes of its body, `tail` the last ones.
    """

    def __init__(self, exchange: Exchange, endpoint: Endpoint, key: str, silence_limit_s: float, pool: Pool) -> None:
        self._exchange = exchange
        self._endpoint = endpoint
        self._key = key
        self._silence_limit_s = silence_limit_s
        self._pool = pool
        self._now = asyncio.get_running_loop().time
        self._connection: EngineConnection | None = None
        self._reply: ReplyHead | None = None
        self._held = b""
        self._tail = bytearray()
        self._timer: asyncio.TimerHandle | None = None
        self._take: Callable[[bytes], bytes]  # what of the reply's bytes goes on, and how: known with its head
        self._write: Callable[[bytes], None]
        self.heard_at = self._now()
        self.first_at: float | None = None
        self.opening = b""
        exchange.on_gone = self.abort

    def begin(self) -> bool:
        """Sends the request on a connection that is there; returns whether one was."""
        connection = self._pool.take(self._endpoint) if self._endpoint.reuses_connections else None
        if connection is not None:
            self._ask(connection)
        return connection is not None

    async def run(self) -> None:
        """Connects and sends the request; the rest happens as bytes come."""
        try:
            connection = await self._pool.connect(self._endpoint)
        except OSError as problem:
            self._break(502, "engine_unreachable", f"The engine of {self._endpoint.service} cannot be reached: {problem}.")
        else:
            self._ask(connection)

    def _ask(self, connection: EngineConnection) -> None:
        if self._exchange.done:  # the client left meanwhile
            connection.drop()
            return
        self._connection = connection
        self._exchange.on_pause = connection.transport.pause_reading
        self._exchange.on_resume = connection.transport.resume_reading
        if self._exchange.paused:
            connection.transport.pause_reading()
        self.heard_at = self._now()
        connection.ask(self, request_head(self._exchange.request, self._endpoint, self._key), self._exchange.request.body)
        self._check_silence()

    def abort(self) -> None:
        """Ends the request at the engine at once, since nobody waits for it any more."""
        self._disarm()
        if self._connection is None:
            return
        if self._reply is not None and self._reply.status == SWITCHED:
            self._connection.close_soon()
        else:
            self._connection.drop()

    @property
    def model(self) -> str:
        """The model that is asked."""
        return self._endpoint.model

    @property
    def tail(self) -> bytes:
        """The last bytes of the reply."""
        return bytes(self._tail)

    # What the connection tells.

    def received(self, data: bytes) -> None:
        """Passes on what came, in one write."""
        self.heard_at = self._now()
        try:
            if self._reply is None:
                data = self._begin_reply(data)
                if self._reply is None:
                    return
            if self.first_at is None and data:
                self.first_at, self.opening = self.heard_at, data[:OPENING_BYTES]
            self._tail += data if len(data) <= TAIL_BYTES else data[-TAIL_BYTES:]
            if len(self._tail) > 2 * TAIL_BYTES:
                del self._tail[:-TAIL_BYTES]
            self._write(self._take(data))
            if self._reply.body.done:
                self._finish(self._reply)
        except BrokenFraming as problem:
            self._break(502, "engine_malformed", f"The engine of {self._endpoint.service} broke HTTP: {problem}.")
            self.abort()

    def _begin_reply(self, data: bytes) -> bytes:
        """Passes the head on once it is there, with the names of who answered; returns what came of the body."""
        data, self._held = self._held + data, b""
        while (parts := split_head(data)) is not None:
            head, data = parts
            reply = read_head(head, self._exchange.request.method)
            if reply.status not in INTERIM:
                self._start(reply)
                return data
        self._held = data
        return b""

    def _start(self, reply: ReplyHead) -> None:
        if reply.status == SWITCHED and not self._exchange.request.is_websocket:
            raise BrokenFraming("it switched to another protocol, which nobody asked for")
        self._reply = reply
        if reply.status == SWITCHED and self._connection is not None:
            self._disarm()  # who speaks when is theirs to agree on
            self._connection.on_full = self._exchange.hold
            self._take = reply.body.feed
            self._write = self._exchange.open_tunnel(reply.headers, self._connection.transport.write)
            return
        self._exchange.start(reply.status, reply.headers, reply.length)
        as_it_comes = self._exchange.chunk_writer() if isinstance(reply.body, ChunkedBody) else None
        self._take = reply.body.feed if as_it_comes else reply.body.decode
        self._write = as_it_comes or self._exchange.write

    def _finish(self, reply: ReplyHead) -> None:
        self._disarm()
        connection, self._connection = self._connection, None
        self._exchange.end()  # first: whose turn comes now gets another connection, as an engine may close this one unsaid
        if connection is None:
            return
        if reply.reusable and self._endpoint.reuses_connections and not reply.body.rest:
            if self._exchange.paused:
                connection.transport.resume_reading()
            connection.give_back()
        else:
            connection.close()

    def lost(self, error: Exception | None) -> None:
        """Ends the reply: cleanly only if it is whole."""
        self._disarm()
        if self._exchange.done:
            return
        if self._reply is not None and isinstance(self._reply.body, OpenBody) and error is None:
            self._exchange.end()
            return
        name = self._endpoint.service
        why = f"The engine of {name} broke the connection before its reply was whole; see `stoker logs {name}`."
        self._break(502, "engine_died", why)

    def _break(self, status: int, code: str, message: str) -> None:
        exchange = self._exchange
        if exchange.done:
            return
        if exchange.status is None or self._reply is None:  # a client that waited for the start has a head already
            refuse(exchange, status, code, message, kind="engine_error")
        elif self._reply is not None and self._reply.is_stream and exchange.end_chunks(_closing(self._reply)):
            exchange.write(error_event(exchange.request.path, message, code))
            exchange.end()
        else:
            exchange.abort()

    def _check_silence(self) -> None:
        silent_s = 0.0 if self._exchange.paused else self._now() - self.heard_at  # then it is us who do not listen
        if silent_s < self._silence_limit_s:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._silence_limit_s - silent_s + 0.001, self._check_silence)
            return
        said = f"The engine of {self._endpoint.service} said nothing for {self._silence_limit_s:g} s"
        self._break(504, "engine_silent", f"{said} (gateway.engine_silence_limit_s).")
        self.abort()

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def request_head(request: Request, endpoint: Endpoint, key: str) -> bytes:
    """Returns the head of the request as the engine gets it."""
    lines = [b"%s %s HTTP/1.1" % (request.method.encode(), request.target or request.path.encode())]
    lines += [b"%s: %s" % pair for pair in request.headers if pair[0] not in NOT_FORWARDED]
    lines += [
        b"host: %s:%d" % (endpoint.host.encode(), endpoint.port),
        b"authorization: Bearer " + key.encode(),
        _connection_line(request, endpoint),
    ]
    if request.body or request.method not in WITHOUT_BODY:
        lines.append(b"content-length: %d" % len(request.body))
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _closing(reply: ReplyHead) -> bytes | None:
    return reply.body.closing() if isinstance(reply.body, ChunkedBody) else b""


def _connection_line(request: Request, endpoint: Endpoint) -> bytes:
    if request.is_websocket:
        return b"connection: Upgrade\r\nupgrade: websocket"
    return b"connection: keep-alive" if endpoint.reuses_connections else b"connection: close"


def identity(endpoint: Endpoint) -> Headers:
    """Returns the headers that say who answered."""
    return [
        (b"x-stoker-service", endpoint.service.encode()),
        (b"x-stoker-model", endpoint.model.encode()),
        (b"x-stoker-revision", endpoint.revision.encode()),
        (b"x-stoker-plan", endpoint.plan_id.encode()),
    ]
