"""The real door and relay in front of a scripted engine's bytes, on loopback sockets in one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import uvloop

from gateway_client import LONG_S, TEST_LIMIT_S, Client
from stoker.config import GatewayConfig
from stoker.gateway.directory import Entry
from stoker.gateway.door import Door
from stoker.gateway.exchange import Headers
from stoker.gateway.keyring import Keyring
from stoker.gateway.meter import Meter
from stoker.gateway.metrics import GatewayMetrics
from stoker.gateway.sessions import Sessions
from stoker.records import Endpoint, QueueLimits, State, UsageRecord

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


class Engine:
    """Writes what it is told to; `asked` are the heads and bodies that came."""

    def __init__(self, answer: Answer, counts: Answer | None = None) -> None:
        self.asked: list[tuple[bytes, bytes]] = []
        self.talking = 0
        self._answer = answer
        self._counts = counts or json_answer(b'{"tokens": [1, 2, 3, 4, 5]}')

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.talking += 1
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
            self.asked.append((head, await reader.readexactly(length)))
            await (self._counts if head.startswith(b"POST /tokenize ") else self._answer)(writer)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        self.talking -= 1

    async def end(self) -> None:
        """Ends what was left open."""


class OneService:
    """A directory of one service, which `entries` returns."""

    model: str

    def entries(self) -> list[Entry]:
        """Returns it."""
        raise NotImplementedError

    def find(self, model: str, headers: Headers | None = None) -> Entry | None:
        return self.entries()[0] if model == self.model else None

    def find_another(self, entry: Entry, tried: frozenset[str]) -> Entry | None:
        return None

    def find_service(self, name: str) -> Entry | None:
        return self.entries()[0] if name == "chat" else None

    def ask(self, service: str) -> None:
        raise AssertionError(service)

    async def bring(self, service: str) -> None:
        raise AssertionError(service)


class Stage(OneService):
    """A door in front of an engine, and the directory of that one service; `used` is what was noted of its requests."""

    def __init__(
        self, engine: Engine, filters: tuple[str, ...], config: GatewayConfig | None = None, model: str = "m"
    ) -> None:
        self.engine = engine
        self.config = config or GatewayConfig(port=0, engine_silence_limit_s=LONG_S)
        self.model = model
        self.keyring = Keyring("key", "control")
        self._filters = filters
        self.port = 0
        self.limits = QueueLimits(None, 64, 0.0)
        self.gateway: dict[str, Any] = {}  # further keys of the [gateway] table
        self.key = b"key"  # with which `chat` asks
        self.reuses, self.path = True, b"/v1/chat/completions"
        self.used: list[UsageRecord] = []
        self._clients: list[Client] = []

    def entries(self) -> list[Entry]:
        endpoint = Endpoint("chat", self.model, "r", "p", "127.0.0.1", self.engine_port, None, self.reuses)
        return [Entry("chat", self.model, State.READY, 0.0, "", None, endpoint, 5, self.limits, filters=self._filters)]

    async def play(self, story: Callable[[Stage], Awaitable[None]]) -> None:
        await self._begin()
        self.upstream = await asyncio.start_server(self.engine.talk, "127.0.0.1", 0)
        self.engine_port = self.upstream.sockets[0].getsockname()[1]
        config = msgspec.structs.replace(self.config, **self.gateway)
        self.metrics = GatewayMetrics(list, "0")
        self.meter = Meter(lambda record, _: self.used.append(record), self.metrics.registry)
        self.door = Door(config, self, no_app, self.metrics, self.keyring, self.meter, "engine", Sessions("control"))
        servers = await self.door.bind()
        self.port = servers[0].sockets[0].getsockname()[1]
        async with asyncio.TaskGroup() as tasks, asyncio.timeout(TEST_LIMIT_S):
            await self.door.open(servers, tasks)
            try:
                await story(self)
            finally:
                await self._close()
                for server in servers:
                    server.close()
                self.door.cut_all()
                self.upstream.close()
                await self.engine.end()
                while self.door.serving.in_flight("chat"):
                    await asyncio.sleep(0)

    async def _begin(self) -> None:
        """Makes what needs an event loop."""

    async def _close(self) -> None:
        for client in self._clients:
            client.writer.transport.abort()
            with contextlib.suppress(OSError):
                await client.writer.wait_closed()

    def forget_clients(self) -> None:
        """Lets go of the clients that were closed."""
        self._clients.clear()

    async def connect(self) -> Client:
        """Returns a new client."""
        self._clients.append(Client(*await asyncio.open_connection("127.0.0.1", self.port)))
        return self._clients[-1]

    async def request(self, method: bytes, target: bytes, *headers: bytes, body: bytes = b"", key: bytes = b"key") -> Client:
        """Sends a request of any kind."""
        client = await self.connect()
        lines = [b"%s %s HTTP/1.1" % (method, target), b"host: 127.0.0.1", b"authorization: Bearer " + key, *headers]
        lines += [b"content-length: %d" % len(body)] if body else []
        client.send(b"\r\n".join([*lines, b"", body]))
        return client

    async def chat(self, *headers: bytes, **body: Any) -> Client:
        """Sends a chat."""
        client = await self.connect()
        raw = json.dumps({"model": self.model, "messages": [], **body}).encode()
        lines = [b"POST %s HTTP/1.1" % self.path, b"host: 127.0.0.1", b"authorization: Bearer " + self.key, *headers]
        client.send(b"\r\n".join([*lines, b"content-length: %d" % len(raw), b"", raw]))
        return client


async def no_app(*_: Any) -> None:
    """Is never asked."""


def json_answer(body: bytes, *headers: bytes, status: int = 200, kind: bytes = b"application/json") -> Answer:
    async def answer(writer: asyncio.StreamWriter) -> None:
        lines = [b"HTTP/1.1 %d X" % status, b"content-type: " + kind, b"content-length: %d" % len(body), *headers]
        writer.write(b"\r\n".join([*lines, b"", body]))

    return answer


def events(*pieces: bytes, ends: bool = True) -> Answer:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        for piece in pieces:
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
        if ends:
            writer.write(b"0\r\n\r\n")

    return answer


def raw(*pieces: bytes) -> Answer:
    """Writes bytes as they are, and closes."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()

    return answer


def run(
    engine: Engine | Answer, story: Callable[[Stage], Awaitable[None]], filters: tuple[str, ...] = (),
    config: GatewayConfig | None = None, model: str = "m",
) -> Engine:  # fmt: skip
    """Plays a story in the daemon's own kind of event loop."""
    played = engine if isinstance(engine, Engine) else Engine(engine)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(Stage(played, filters, config, model).play(story))
    return played


class HeldEngine(Engine):
    """Answers each request when it is let go; `tags` are those that came, in their order."""

    def __init__(self) -> None:
        super().__init__(self._hold)
        self._came: asyncio.Queue[asyncio.Event] = asyncio.Queue()
        self._gates: list[asyncio.Event] = []

    async def _hold(self, writer: asyncio.StreamWriter) -> None:
        gate = asyncio.Event()
        self._gates.append(gate)
        self._came.put_nowait(gate)
        await gate.wait()
        await json_answer(b'{"model": "m"}')(writer)

    async def next(self) -> asyncio.Event:
        """Returns what lets the next request go, once it came."""
        return await self._came.get()

    async def end(self) -> None:
        """Lets all go that were left."""
        for gate in self._gates:
            gate.set()
        await until(lambda: self.talking == 0)

    @property
    def tags(self) -> list[str]:
        return [json.loads(body)["tag"] for _, body in self.asked]


async def until(is_so: Callable[[], bool]) -> None:
    """Lets the event loop go on until something is so; the stage's limit ends it."""
    while not is_so():
        await asyncio.sleep(0.001)


def act(stage: Stage, story: Callable[[Stage], Awaitable[None]]) -> None:
    """Plays a story on a stage of its own kind."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(stage.play(story))
