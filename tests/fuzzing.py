"""Plays what a client sends to a real connection, on a transport and a clock of the test's own; reads it with h11 too."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, cast

import h11

from stoker.gateway.connection import ClientConnection, Limits
from stoker.gateway.exchange import Exchange, Headers
from stoker.gateway.keyring import Denial
from stoker.gateway.meter import refuse_denied

LIMITS = Limits(body_bytes=64 * 1024, head_s=10.0, body_s=10.0)
# Several spaces may part the words (RFC 9112, 3); llhttp speaks RTSP and ICE (`SOURCE`) too.
LINE = re.compile(rb"([A-Z-]+) +([^\s]+) +(?:HTTP|RTSP|ICE)/(1\.[01]\r\n)")
NOT_COMPARED = "this cannot be compared"
LONG_S = 1000.0  # longer than any limit
ANSWER = re.compile(
    rb"HTTP/1\.1 100 Continue\r\n\r\n"
    rb"|HTTP/1\.1 200 OK\r\nx-number: (?P<number>\d+)\r\n(?:[a-z-]+: [^\r\n]*\r\n)*\r\n(?:2\r\nok\r\n0\r\n\r\n|ok|)"
    rb"|HTTP/1\.1 (?P<refused>\d+) [A-Za-z ]+\r\n(?:[a-z-]+: [^\r\n]*\r\n)*connection: close\r\n\r\n"
    rb'\{"error":\{[^\r\n]*\}\}$'
)  # fmt: skip


class Clock(asyncio.SelectorEventLoop):
    """A real event loop whose time can be put forward."""

    ahead_s = 0.0

    def time(self) -> float:
        """The time, as far ahead as it was put."""
        return super().time() + self.ahead_s


class Wire(asyncio.Transport):
    """A transport in memory: keeps what is written, and holds back what comes while reading is paused."""

    def __init__(self, loop: asyncio.AbstractEventLoop, protocol: ClientConnection) -> None:
        super().__init__()
        self._loop = loop
        self._client = protocol
        self._coming: deque[bytes] = deque()
        self._reads = True
        self.is_lost = False
        self.written = bytearray()

    def come(self, data: bytes) -> None:
        """Gives the connection what the client sent, now or once it reads on."""
        self._coming.append(data)
        self._deliver()

    def _deliver(self) -> None:
        while self._coming and self._reads and not self.is_lost:
            self._client.data_received(self._coming.popleft())

    def write(self, data: Any) -> None:
        """Keeps it."""
        if not self.is_lost:
            self.written += data

    def close(self) -> None:
        """Closes; the connection is told a little later, as by a socket's transport."""
        if not self.is_lost:
            self.is_lost = True
            self._loop.call_soon(self._client.connection_lost, None)

    abort = close

    def is_closing(self) -> bool:
        """Tells whether it was closed."""
        return self.is_lost

    def is_reading(self) -> bool:
        """Tells whether what comes is given on at once."""
        return self._reads and not self.is_lost

    def pause_reading(self) -> None:
        """Holds back what comes."""
        self._reads = False

    def resume_reading(self) -> None:
        """Gives on what was held back, a little later, as by a socket's transport."""
        self._reads = True
        self._loop.call_soon(self._deliver)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Never mind: everything is written at once."""


class Taken(NamedTuple):
    """A request as one parser read it."""

    method: str
    target: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes


class Played(NamedTuple):
    """What came of an input."""

    taken: list[Taken]
    refused: int | None
    written: bytes


class Player:
    """Plays inputs, each to a connection of its own."""

    def __init__(self) -> None:
        self.loop = Clock()
        self.faults: list[dict[str, Any]] = []
        self.loop.set_exception_handler(lambda _, context: self.faults.append(context))
        self.open: set[ClientConnection] = set()
        self.handle: Callable[[Exchange], None] = _take_nothing

    def play(self, pieces: list[bytes], waits: bool) -> Played:
        """Plays one input to its end and past all limits; `waits`: answers come a turn of the loop later."""
        return self.loop.run_until_complete(self._play(pieces, waits))

    async def _play(self, pieces: list[bytes], waits: bool) -> Played:
        taken: list[Taken] = []

        def handle(exchange: Exchange) -> None:
            taken.append(_take(exchange))
            answer = partial(_answer, exchange, len(taken))
            self.loop.call_soon(answer) if waits else answer()

        self.handle = handle
        connection = ClientConnection(self, LIMITS)
        wire = Wire(self.loop, connection)
        connection.connection_made(wire)
        for piece in pieces:
            wire.come(piece)
            if waits:
                await asyncio.sleep(0)
        await self._let_time_pass(wire)
        return Played(taken, _check_answers(bytes(wire.written), len(taken)), bytes(wire.written))

    async def _let_time_pass(self, wire: Wire) -> None:
        for _ in range(40):  # a request, its answer and the next one take a few turns of the loop each
            await asyncio.sleep(0)
        for _ in range(4):  # the head's limit, the refusal's lingering
            self.loop.ahead_s += LONG_S
            for _ in range(4):
                await asyncio.sleep(0)
        assert wire.is_lost, "a client that sends no more is never let go"
        assert not self.open, "a connection that was lost is still counted"

    def deny_stranger(self, headers: Headers, peer: str) -> Denial | None:
        """Lets everybody in: what is looked at here are the requests."""
        return None

    def refuse_unread(self, exchange: Exchange, denial: Denial) -> None:
        """Answers as the door does."""
        refuse_denied(exchange, denial)

    def register(self, connection: ClientConnection, is_open: bool) -> None:
        """Counts the connections."""
        (self.open.add if is_open else self.open.remove)(connection)


def _take_nothing(exchange: Exchange) -> None:
    raise AssertionError(exchange)


def _take(exchange: Exchange) -> Taken:
    request = exchange.request
    lower = b"transfer-encoding"  # as h11 gives it
    headers = tuple((name, value.lower() if name == lower else value) for name, value in request.headers)
    return Taken(request.method, request.path.encode() + b"?" + request.query, headers, bytes(request.body))


def _answer(exchange: Exchange, number: int) -> None:
    headers = [(b"x-number", b"%d" % number)]
    if number % 2:
        exchange.reply(200, headers, b"ok")
    else:
        exchange.start(200, headers, None)
        exchange.write(b"ok")
        exchange.end()


def _check_answers(written: bytes, asked: int) -> int | None:
    """Returns the status of the refusal that came last; fails where anything else than answers in order was written."""
    position, given, refused = 0, 0, None
    while position < len(written):
        answer = ANSWER.match(written, position)
        assert answer is not None, f"this is no answer: {written[position:]!r}"
        assert refused is None, "an answer follows a refusal"
        position = answer.end()
        if answer["number"]:
            given += 1
            assert int(answer["number"]) == given, "answers come out of order"
        elif answer["refused"]:
            refused = int(answer["refused"])
    assert given == asked, f"{asked} requests were taken, {given} answered"
    assert refused is None or 400 <= refused < 500, f"refused with {refused}"
    return refused


def read_with_h11(stream: bytes) -> tuple[list[Taken], str]:
    """Returns the requests that h11 reads in the input, and why it stopped where it took offence."""
    taken, why = _read(stream)
    if why.startswith("illegal request line"):  # what llhttp lets pass there frames nothing otherwise
        again, reason = _read(LINE.sub(rb"\1 \2 HTTP/\3", stream))
        return (again, reason) if again[: len(taken)] == taken else (taken, NOT_COMPARED)  # it looked like a line, in a body
    return taken, why


def _read(stream: bytes) -> tuple[list[Taken], str]:
    if not stream:
        return [], ""  # to h11 it means that the client has closed
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=64 * 1024)
    connection.receive_data(stream)
    taken: list[Taken] = []
    try:
        while (request := connection.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
            assert isinstance(request, h11.Request)
            body = _read_body(connection)
            if body is None:
                break
            taken.append(Taken(request.method.decode(), request.target, _headers(request), body))
            connection.send(h11.Response(status_code=404, headers=[("content-length", "0")]))
            connection.send(h11.EndOfMessage())
            if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
                break
            connection.start_next_cycle()
    except h11.RemoteProtocolError as problem:
        return taken, str(problem)
    return taken, ""


def _headers(request: h11.Request) -> tuple[tuple[bytes, bytes], ...]:
    return tuple(cast(list[tuple[bytes, bytes]], list(request.headers)))


def _read_body(connection: h11.Connection) -> bytes | None:
    body = b""
    while not isinstance(event := connection.next_event(), h11.EndOfMessage):
        if not isinstance(event, h11.Data):
            return None
        body += event.data
    return body
