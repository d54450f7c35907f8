"""A box's listener of trunks and a door's trunks to it, over real TLS on loopback in one event loop."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from hashlib import sha256
from pathlib import Path
from typing import cast

import uvloop

from certificates import make_certificate
from door_stage import until
from gateway_client import TEST_LIMIT_S
from stoker.gateway.trunk.channel import Channel
from stoker.gateway.trunk.frames import PROTOCOL
from stoker.gateway.trunk.greeting import Greeting
from stoker.gateway.trunk.trunk import Trunk
from stoker.gateway.trunk.trunks import Address, Trunks
from tls_peer import Listener

IDLE_S = 30.0


class End(Listener):
    """Who speaks over one end of a channel, and what it was told."""

    @property
    def size_bytes(self) -> int:
        """How much came."""
        return sum(map(len, self.heard))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.channel = cast(asyncio.Transport, transport)


class TrunkPair:
    """Opens channels; `ends` are the box's, in the order in which they were opened."""

    def __init__(self, folder: Path) -> None:
        certificate, key = make_certificate(folder)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate, key)
        self.context.set_alpn_protocols([PROTOCOL])
        self._pin = sha256(ssl.PEM_cert_to_DER_cert(certificate.read_text())).hexdigest()
        self.ends: list[End] = []
        self.here: set[Trunk] = set()
        self.make_end: Callable[[], asyncio.Protocol] = End

    def _accept(self) -> asyncio.Protocol:
        end = self.make_end()
        if isinstance(end, End):
            self.ends.append(end)
        return end

    def _make_trunk(self) -> Trunk:
        trunk = Trunk(IDLE_S, self.here.discard, self._accept)
        self.here.add(trunk)
        return trunk

    async def open(self) -> tuple[End, End]:
        """Returns both ends of a new channel, the door's first."""
        before, ours = len(self.ends), End()
        channel = await self.trunks.open(self.address)
        channel.set_protocol(ours)
        ours.connection_made(channel)
        await until(lambda: len(self.ends) > before)
        return ours, self.ends[before]

    async def open_raw(self) -> Channel:
        """Returns a channel whose other end nobody waits for."""
        return await self.trunks.open(self.address)

    @property
    def trunk(self) -> Trunk:
        """The box's end of the one trunk that there is."""
        [trunk] = self.here
        return trunk

    def play(self, story: Callable[[], Awaitable[None]]) -> None:
        """Plays a story in the daemon's own kind of event loop."""

        async def played() -> None:
            loop = asyncio.get_running_loop()
            server = await loop.create_server(
                lambda: Greeting(self._accept, self._make_trunk), "127.0.0.1", 0, ssl=self.context
            )
            self.address: Address = ("127.0.0.1", server.sockets[0].getsockname()[1], self._pin)
            self.trunks = Trunks()
            async with asyncio.timeout(TEST_LIMIT_S):
                try:
                    await story()
                finally:
                    server.close()
                    self.trunks.close()
                    for trunk in list(self.here):
                        trunk.abort()
                    await until(lambda: not self.here)

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(played())
