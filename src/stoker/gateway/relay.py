"""Carries one request to an engine and its reply back, byte for byte.

Every request has an upstream connection of its own: a request sent on a connection that the engine is just closing could
neither be repeated safely nor be told from one that was begun, and on loopback a connection costs less than 0.1 ms.
"""

from __future__ import annotations

import asyncio
from typing import cast

import httptools

from stoker.gateway.exchange import Exchange, Headers
from stoker.gateway.refusals import error_event, refuse
from stoker.records import Endpoint

CONNECT_TRIES = 2
CONNECT_LIMIT_S = 5.0
HOP_BY_HOP = frozenset({
    b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"te", b"trailer", b"transfer-encoding",
    b"upgrade", b"proxy-connection",
})  # fmt: skip
NOT_FORWARDED = HOP_BY_HOP | {
    b"host",
    b"authorization",
    b"content-length",
    b"expect",
    b"cookie",
    b"origin",
    b"x-api-key",
}
NOT_RETURNED = HOP_BY_HOP | {b"content-length", b"access-control-allow-origin", b"access-control-allow-credentials"}


class Relay(asyncio.Protocol):
    """One request under way to an engine. `on_silent` limits how long the engine may say nothing."""

    def __init__(self, exchange: Exchange, endpoint: Endpoint, key: str, silence_limit_s: float) -> None:
        self._exchange = exchange
        self._endpoint = endpoint
        self._key = key
        self._silence_limit_s = silence_limit_s
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._headers: Headers = []
        self._pieces: list[bytes] = []
        self._is_stream = False
        self._ends_with_connection = False
        self._complete = False
        self.heard_at = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        exchange.on_gone = self.abort

    async def run(self) -> None:
        """Connects and sends the request; the rest happens as bytes come."""
        for attempt in range(CONNECT_TRIES):  # nothing was sent yet, so a second try cannot do anything twice
            try:
                async with asyncio.timeout(CONNECT_LIMIT_S):
                    await self._loop.create_connection(lambda: self, self._endpoint.host, self._endpoint.port)
            except OSError as problem:
                if attempt + 1 == CONNECT_TRIES:
                    self._refuse(
                        "engine_unreachable", f"The engine of {self._endpoint.service} cannot be reached: {problem}."
                    )
            else:
                return

    def _refuse(self, code: str, message: str) -> None:
        if not self._exchange.done:
            refuse(self._exchange, 502, code, message, kind="engine_error")

    def abort(self) -> None:
        """Ends the request at the engine at once, since nobody waits for it any more."""
        self._disarm()
        if self._transport is not None:
            self._transport.abort()

    # What the event loop tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Sends the request."""
        self._transport = cast(asyncio.Transport, transport)
        if self._exchange.done:
            self._transport.abort()
            return
        self._exchange.on_pause = self._transport.pause_reading
        self._exchange.on_resume = self._transport.resume_reading
        if self._exchange.paused:
            self._transport.pause_reading()
        self._transport.write(self._request_head())
        self._transport.write(self._exchange.request.body)
        self._check_silence()

    def _request_head(self) -> bytes:
        request = self._exchange.request
        target = request.path.encode() + (b"?" + request.query if request.query else b"")
        lines = [b"%s %s HTTP/1.1" % (request.method.encode(), target)]
        lines += [b"%s: %s" % (name, value) for name, value in request.headers if name not in NOT_FORWARDED]
        lines += [
            b"host: %s:%d" % (self._endpoint.host.encode(), self._endpoint.port),
            b"authorization: Bearer " + self._key.encode(),
            b"content-length: %d" % len(request.body),
            b"connection: close",
        ]
        return b"\r\n".join(lines) + b"\r\n\r\n"

    def _check_silence(self) -> None:
        silent_s = self._loop.time() - self.heard_at
        if silent_s < self._silence_limit_s:
            self._timer = self._loop.call_later(self._silence_limit_s - silent_s + 0.001, self._check_silence)
            return
        said = f"The engine of {self._endpoint.service} said nothing for {self._silence_limit_s:g} s"
        self._break(504, "engine_silent", f"{said} (gateway.engine_silence_limit_s).")
        self.abort()

    def data_received(self, data: bytes) -> None:
        """Passes on what came, in one write."""
        self.heard_at = self._loop.time()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as problem:
            self._break(502, "engine_malformed", f"The engine of {self._endpoint.service} broke HTTP: {problem}.")
            self.abort()
            return
        if self._pieces:
            self._exchange.write(b"".join(self._pieces))
            self._pieces.clear()
        if self._complete:
            self._finish()

    def connection_lost(self, error: Exception | None) -> None:
        """Ends the reply: cleanly only if it is whole."""
        self._disarm()
        if self._exchange.done:
            return
        if self._ends_with_connection and error is None:
            self._exchange.end()
            return
        name = self._endpoint.service
        self._break(
            502,
            "engine_died",
            f"The engine of {name} broke the connection before its reply was whole; see `stoker logs {name}`.",
        )

    def _break(self, status: int, code: str, message: str) -> None:
        if self._exchange.done:
            return
        if self._exchange.status is None:
            refuse(self._exchange, status, code, message, kind="engine_error")
        elif self._is_stream:
            self._exchange.write(error_event(self._exchange.request.path, message, code))
            self._exchange.end()
        else:
            self._exchange.abort()

    def _finish(self) -> None:
        self._disarm()
        self._exchange.end()
        if self._transport is not None:
            self._transport.close()

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    # What the parser tells.

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header of the reply."""
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Passes the head on, with the names of who answered."""
        lengths = [int(value) for name, value in self._headers if name == b"content-length"]
        kinds = [value for name, value in self._headers if name == b"content-type"]
        self._is_stream = bool(kinds) and kinds[0].startswith(b"text/event-stream")
        self._ends_with_connection = not lengths and not any(name == b"transfer-encoding" for name, _ in self._headers)
        kept = [pair for pair in self._headers if pair[0] not in NOT_RETURNED]
        self._exchange.start(self._parser.get_status_code(), kept, lengths[0] if lengths else None)

    def on_body(self, body: bytes) -> None:
        """A piece of the reply."""
        self._pieces.append(body)

    def on_message_complete(self) -> None:
        """The reply is whole."""
        self._complete = True


def identity(endpoint: Endpoint, request_id: bytes) -> Headers:
    """Returns the headers that say who answered."""
    return [
        (b"x-stoker-service", endpoint.service.encode()),
        (b"x-stoker-model", endpoint.model.encode()),
        (b"x-stoker-revision", endpoint.revision.encode()),
        (b"x-stoker-plan", endpoint.plan_id.encode()),
        (b"x-request-id", request_id),
    ]
