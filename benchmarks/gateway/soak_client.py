"""The clients of a soak: each asks again and again, and at times leaves, or asks for another model."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time

import httptools

from benchmarks.gateway.raw_client import Reply, render_chat, render_head
from benchmarks.gateway.soak_judge import Asked, Tally

READ_BYTES = 65536
REPLY_LIMIT_S = 120.0
REFUSED_PAUSE_S = 0.5
UNKNOWN = "nosuch"
MOST_CHUNKS, MOST_PAD_BYTES = 60, 2000
KINDS = {
    "stream": 66,
    "reply": 8,
    "leave mid-stream": 10,
    "leave before the first token": 6,
    "other model": 7,
    "unknown model": 3,
}


class Scene:
    """What all clients know: who is up, and whether services are being switched."""

    def __init__(self, port: int, headers: dict[str, str], models: list[str]) -> None:
        self.port, self.headers, self.models = port, headers, models
        self.up = models[0]
        self.switching = False
        self.switched_s = 0.0

    @property
    def other(self) -> str:
        """The model that is not up."""
        return next(model for model in self.models if model != self.up)


class SoakClient:
    """One client with one connection, which it opens anew where it has to."""

    def __init__(self, scene: Scene, tally: Tally, itl_ms: float, seed: int) -> None:
        self._scene, self._tally, self._itl_ms = scene, tally, itl_ms
        self._random = random.Random(seed)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def run(self, end_s: float) -> None:
        """Asks until the time is over."""
        while time.monotonic() < end_s:
            kind = self._random.choices(list(KINDS), list(KINDS.values()))[0]
            try:
                async with asyncio.timeout(REPLY_LIMIT_S):
                    await self._ask(kind)
            except TimeoutError:
                self._tally.breach(f"{kind}: nothing ended within {REPLY_LIMIT_S:g} s")
                self._leave()
        self._leave()

    async def _ask(self, kind: str) -> None:
        model = {"other model": self._scene.other, "unknown model": UNKNOWN}.get(kind, self._scene.up)
        chunks, stream = self._random.randint(1, MOST_CHUNKS), kind != "reply"
        begun_s = time.monotonic()
        _, writer = await self._connect()
        writer.write(self._render(kind, model, chunks, stream))
        if kind.startswith("leave"):
            await self._leave_early(kind, chunks)
            return
        reply = await self._read(Reply())
        fails = self._scene.switching or self._scene.switched_s > begun_s
        self._tally.take(Asked(model, chunks, stream, model != UNKNOWN, fails), reply)
        if reply.status != 200:
            await asyncio.sleep(REFUSED_PAUSE_S)  # as a client that comes back later

    def _render(self, kind: str, model: str, chunks: int, stream: bool) -> bytes:
        ttft_ms = 5000 if kind == "leave before the first token" else 20
        pad_bytes = self._random.randint(0, MOST_PAD_BYTES)
        words = f"mock ttft={ttft_ms} itl={self._itl_ms:g} tokens={chunks} pad={pad_bytes} sum=1"
        body = render_chat(words, stream, model)
        return render_head(self._scene, len(body)) + body

    async def _leave_early(self, kind: str, chunks: int) -> None:
        if kind == "leave mid-stream":
            reply = await self._read(Reply(), self._random.randint(1, chunks))
            self._tally.chunks += reply.chunks
        else:
            await asyncio.sleep(self._random.uniform(0.0, 0.5))  # as long as a person waits
        self._tally.seen[kind.replace("leave", "left")] += 1
        self._leave()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._scene.port)
        return self._streams

    async def _read(self, reply: Reply, chunks: int | None = None) -> Reply:
        """Reads a reply to its end, or so many chunks of it."""
        reader, _ = await self._connect()
        while reply.end == "timeout" and (chunks is None or reply.chunks < chunks):
            try:
                data = await reader.read(READ_BYTES)
                reply.parser.feed_data(data)
            except (OSError, httptools.HttpParserError) as problem:
                reply.end = f"cut ({type(problem).__name__})"
            else:
                reply.end = reply.end if data or reply.end == "complete" else "closed before its end"
        if reply.end != "complete" or not reply.parser.should_keep_alive():
            self._leave()
        return reply

    def _leave(self) -> None:
        if self._streams is not None:
            with contextlib.suppress(OSError):
                self._streams[1].transport.abort()
            self._streams = None
