"""A raw client and a bare server for tests of the gateway's connection, in one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import uvloop

from stoker.gateway.connection import ClientConnection, Limits
from stoker.gateway.exchange import Exchange, Headers
from stoker.gateway.keyring import Denial
from stoker.gateway.meter import refuse_denied

BODY_LIMIT_BYTES = 512 * 1024
LONG_S, TEST_LIMIT_S = 30.0, 20.0
LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The error's code, of an answer in OpenAI's shape."""
        return self.body.decode().partition('"code":"')[2].partition('"')[0]


class Client:
    """A client that writes raw bytes and reads whole answers."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, *pieces: bytes) -> None:
        self.writer.write(b"".join(pieces))

    async def read_answer(self, bodiless: bool = False, breaks: bool = False) -> Answer:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:-2])}
        if bodiless:
            body = b""
        elif headers.get("transfer-encoding") == "chunked":
            body = await (self.read_broken_chunks() if breaks else self.read_chunks())
        else:
            body = await self.reader.readexactly(int(headers["content-length"]))
        return Answer(int(head[0].split()[1]), headers, body)

    async def read_chunks(self) -> bytes:
        body = b""
        while size := int(await self.reader.readline(), 16):
            body += await self.reader.readexactly(size)
            assert await self.reader.readexactly(2) == b"\r\n"
        assert await self.reader.readexactly(2) == b"\r\n"
        return body

    async def read_broken_chunks(self) -> bytes:
        """Reads up to the close, which comes after a whole chunk, without the last one, and is no reset."""
        body = b""
        while line := await self.reader.readline():
            size = int(line, 16)
            assert size, "the reply ended as if it were whole"
            body += await self.reader.readexactly(size)
            assert await self.reader.readexactly(2) == b"\r\n"
        return body

    async def read_to_the_end(self) -> bytes:
        try:
            return await self.reader.read()
        except ConnectionResetError:
            return b""

    def stop_reading(self) -> None:
        """Leaves what comes in the socket, so that its buffers fill."""
        self.reader._transport.pause_reading()  # type: ignore[attr-defined]

    def read_on(self) -> None:
        """Ends `stop_reading`."""
        self.reader._transport.resume_reading()  # type: ignore[attr-defined]

    async def is_closed(self) -> bool:
        return await self.read_to_the_end() == b""


class Server:
    """The connection's server; `held` are the exchanges that nobody has answered yet."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.held: asyncio.Queue[Exchange] = asyncio.Queue()
        self.answers_at_once = True
        self.denied: Denial | None = None  # what strangers with large bodies are told
        self.connections: set[ClientConnection] = set()
        self.faults: list[dict[str, Any]] = []
        self.handled = 0
        self.clients: list[Client] = []

    def handle(self, exchange: Exchange) -> None:
        self.handled += 1
        if self.answers_at_once:
            echo(exchange)
        else:
            self.held.put_nowait(exchange)

    def deny_stranger(self, headers: Headers, peer: str) -> Denial | None:
        return self.denied

    def refuse_unread(self, exchange: Exchange, denial: Denial) -> None:
        refuse_denied(exchange, denial)

    def register(self, connection: ClientConnection, is_open: bool) -> None:
        (self.connections.add if is_open else self.connections.remove)(connection)

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: self.faults.append(context))
        self.server = await loop.create_server(lambda: ClientConnection(self, self.limits), "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]

    async def connect(self) -> Client:
        self.clients.append(Client(*await asyncio.open_connection("127.0.0.1", self.port)))
        return self.clients[-1]

    async def close(self) -> None:
        self.server.close()
        for connection in list(self.connections):
            connection.cut()
        for client in self.clients:
            client.writer.transport.abort()
            with contextlib.suppress(OSError):
                await client.writer.wait_closed()
        while self.connections:
            await asyncio.sleep(0)


def echo(exchange: Exchange) -> None:
    request = exchange.request
    exchange.reply(200, [], b" ".join((request.method.encode(), request.path.encode(), request.query, request.body)))


def run(
    story: Callable[[Server], Awaitable[None]],
    loop_factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop,
    *, head_s: float = LONG_S, body_s: float = LONG_S,
) -> Server:  # fmt: skip
    """Plays a story with a server and a client; fails where anything reaches the loop's exception handler."""
    server = Server(Limits(BODY_LIMIT_BYTES, head_s, body_s))

    async def play() -> None:
        await server.open()
        try:
            async with asyncio.timeout(TEST_LIMIT_S):
                await story(server)
        finally:
            async with asyncio.timeout(TEST_LIMIT_S):
                await server.close()

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(play())
    assert server.faults == []
    return server


Loop = Callable[[], asyncio.AbstractEventLoop]


def get(path: bytes = b"/", *headers: bytes, version: bytes = b"1.1") -> bytes:
    return b"\r\n".join((b"GET %s HTTP/%s" % (path, version), b"host: x", *headers, b"", b""))


def post(body: bytes, *headers: bytes, path: bytes = b"/p") -> bytes:
    length = b"content-length: %d" % len(body)
    return b"\r\n".join((b"POST %s HTTP/1.1" % path, b"host: x", length, *headers, b"", body))


def chunked(*pieces: bytes) -> bytes:
    head = b"POST /c HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
