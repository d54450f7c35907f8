"""The other end of a sealed connection, which can send its records in any pieces, break them, and leave without a word."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable
from hashlib import sha256
from pathlib import Path

import uvloop

from certificates import make_certificate
from door_stage import until
from gateway_client import TEST_LIMIT_S
from stoker.gateway.sealed import NOBODY, Sealed, open_sealed

READ_BYTES = 64 * 1024


class Peer:
    """Speaks TLS in memory, so that what is on the wire is the test's to choose."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, context: ssl.SSLContext) -> None:
        self.reader, self.writer = reader, writer
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    async def shake(self) -> None:
        """Shakes hands."""
        while True:
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                self.writer.write(self._outgoing.read())
                await self._hear()
            else:
                self.writer.write(self._outgoing.read())
                return

    def leave(self) -> None:
        """Closes after TLS's word of what was wrong."""
        self.writer.write(self._outgoing.read())
        self.writer.close()

    async def _hear(self) -> None:
        data = await self.reader.read(READ_BYTES)
        if not data:
            raise ConnectionResetError
        self._incoming.write(data)

    async def read(self) -> bytes:
        """Returns what came next; nothing once TLS has said the end, and raises where it was cut."""
        while True:
            try:
                return self.tls.read(READ_BYTES)
            except ssl.SSLWantReadError:
                await self._hear()

    def seal(self, *pieces: bytes) -> bytes:
        """Returns each of them as a record of its own."""
        for piece in pieces:
            self.tls.write(piece)
        return self._outgoing.read()

    def seal_end(self) -> bytes:
        """Returns TLS's word of the end."""
        with contextlib.suppress(ssl.SSLWantReadError):
            self.tls.unwrap()
        return self._outgoing.read()


class Listener(asyncio.Protocol):
    """What was told of a connection."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.lost: list[Exception | None] = []
        self.paused: list[bool] = []

    @property
    def whole(self) -> bytes:
        """All that was heard."""
        return b"".join(self.heard)

    def data_received(self, data: bytes) -> None:
        self.heard.append(data)

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.append(error)

    def pause_writing(self) -> None:
        self.paused.append(True)

    def resume_writing(self) -> None:
        self.paused.append(False)


class Pair:
    """A box with a certificate of its own, and connections to it."""

    def __init__(self, folder: Path) -> None:
        certificate, key = make_certificate(folder)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate, key)
        self.pin = sha256(ssl.PEM_cert_to_DER_cert(certificate.read_text())).hexdigest()
        self.port = 0
        self._peers: asyncio.Queue[Peer] = asyncio.Queue()
        self._writers: list[asyncio.StreamWriter] = []
        self._opened: list[Sealed] = []

    async def _let_in(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        peer = Peer(reader, writer, self.context)
        try:
            await peer.shake()
        except OSError:
            peer.leave()
        else:
            self._peers.put_nowait(peer)

    async def open(self, pin: str | None = None) -> tuple[Sealed, Listener, Peer]:
        """Returns a connection, what is told of it, and its other end."""
        sealed, listener = await open_sealed("127.0.0.1", self.port, self.pin if pin is None else pin), Listener()
        sealed.set_protocol(listener)
        self._opened.append(sealed)
        return sealed, listener, await self.accepted()

    async def accepted(self) -> Peer:
        """Returns the next one that came and shook hands."""
        return await self._peers.get()

    async def _close(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
        for sealed in self._opened:
            sealed.abort()
        await until(lambda: all(sealed._told is NOBODY for sealed in self._opened))

    def forget(self) -> None:
        """Lets go of the connections, which have ended."""
        self._opened.clear()

    def play(self, story: Callable[[], Awaitable[None]]) -> None:
        """Plays a story in the daemon's own kind of event loop."""

        async def played() -> None:
            server = await asyncio.start_server(self._let_in, "127.0.0.1", 0)
            self.port = server.sockets[0].getsockname()[1]
            async with asyncio.timeout(TEST_LIMIT_S):
                try:
                    await story()
                finally:
                    server.close()
                    await self._close()

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(played())
