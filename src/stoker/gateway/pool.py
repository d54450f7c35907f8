"""Connections to engines: opened when needed, kept for the next request for a moment."""

from __future__ import annotations

import asyncio
import select
from collections import defaultdict
from itertools import takewhile
from typing import cast

from stoker.gateway.trunk.trunks import Address, Trunks
from stoker.records import Endpoint

CONNECT_TRIES = 2
CONNECT_LIMIT_S = 5.0
LINGER_S = 5.0
# Engines that keep connections close them after 5 s (uvicorn under vLLM and SGLang). One that is reused well before cannot
# be closing just then, so no request goes out on a connection of which nobody could say whether it was still read.
REUSE_LIMIT_S = 2.0
# Not one by one, nor many at once: each takes 0.1 ms to close, for which streams wait.
SWEEP_PAUSE_S = 0.02
WRITE_BUFFER_BYTES = 64 * 1024


class EngineConnection(asyncio.Protocol):
    """One connection to an engine; whoever has a request under way on it is its protocol meanwhile."""

    def __init__(self, address: Address, pool: Pool) -> None:
        self.address = address
        self.idle_since = 0.0
        self._pool = pool
        self._look = select.poll()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps what bytes are written to."""
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        socket = transport.get_extra_info("socket")
        if socket is not None:  # a channel in another box's trunk has none, and is not kept
            self._look.register(socket.fileno(), select.POLLIN)

    def ask(self, asker: asyncio.Protocol, *pieces: bytes | bytearray) -> None:
        """Sends a request; what comes from now on is told to `asker`, without a step between."""
        self.transport.set_protocol(asker)
        for piece in pieces:
            self.transport.write(piece)

    def data_received(self, data: bytes) -> None:
        """An engine that speaks unasked is not spoken to any more."""
        self.drop()

    def connection_lost(self, error: Exception | None) -> None:
        """Leaves the pool."""
        self._pool.forget(self)

    def is_quiet(self) -> bool:
        """Tells whether the engine has neither closed nor spoken, as of now and not of when the event loop looked last."""
        # A microsecond; a request that goes out on a connection just closed would be lost.
        return not self.transport.is_closing() and not self._look.poll(0)

    def give_back(self) -> None:
        """Keeps the connection for another request."""
        self.transport.set_protocol(self)
        self._pool.keep(self)

    def close(self) -> None:
        """Ends the connection, after what is still to be written."""
        self.transport.close()

    def close_soon(self) -> None:
        """Closes a tunnel whose client has left: its last words are written first, if the engine takes them."""
        self.transport.close()
        asyncio.get_running_loop().call_later(LINGER_S, self.transport.abort)

    def drop(self) -> None:
        """Cuts the connection, so that the engine sees at once that nobody waits any more."""
        self.transport.abort()


class Pool:
    """The connections that are kept for a next request."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._trunks = Trunks()
        # In the order in which they were given back: the last one is used next, the first one has waited longest.
        self._idle: defaultdict[Address, dict[EngineConnection, None]] = defaultdict(dict)
        self._timer: asyncio.TimerHandle | None = None

    def take(self, endpoint: Endpoint) -> EngineConnection | None:
        """Returns the connection that was used last, if it may still be used."""
        idle, oldest = self._idle.get((endpoint.host, endpoint.port, endpoint.pin)), self._loop.time() - REUSE_LIMIT_S
        while idle:
            connection, _ = idle.popitem()
            if connection.idle_since > oldest and connection.is_quiet():
                return connection
            connection.drop()
        return None

    async def connect(self, endpoint: Endpoint) -> EngineConnection:
        """Opens a connection; raises OSError after a second failure. Nothing was sent, so none is done twice."""
        address = (endpoint.host, endpoint.port, endpoint.pin)
        if endpoint.box:
            return await self._open_box(address)
        for _ in range(CONNECT_TRIES - 1):
            try:
                return await self._open(address)
            except OSError:
                continue
        return await self._open(address)

    async def _open(self, address: Address) -> EngineConnection:
        async with asyncio.timeout(CONNECT_LIMIT_S):
            return (await self._loop.create_connection(lambda: EngineConnection(address, self), *address[:2]))[1]

    async def _open_box(self, address: Address) -> EngineConnection:
        channel = await self._trunks.open(address)
        connection = EngineConnection(address, self)
        channel.set_protocol(connection)
        connection.connection_made(channel)
        return connection

    def keep(self, connection: EngineConnection) -> None:
        """Keeps a connection whose reply is whole."""
        connection.idle_since = self._loop.time()
        self._idle[connection.address][connection] = None
        if self._timer is None:
            self._timer = self._loop.call_later(REUSE_LIMIT_S, self._sweep)

    def forget(self, connection: EngineConnection) -> None:
        """Learns that a connection has ended."""
        self._idle.get(connection.address, {}).pop(connection, None)

    def _sweep(self) -> None:
        now = self._loop.time()
        for address, idle in list(self._idle.items()):
            for connection in list(takewhile(lambda one: one.idle_since <= now - REUSE_LIMIT_S, idle)):
                del idle[connection]
                connection.close()
            if not idle:
                del self._idle[address]
        due = min((next(iter(idle)).idle_since + REUSE_LIMIT_S for idle in self._idle.values()), default=None)
        self._timer = None if due is None else self._loop.call_at(max(due, now + SWEEP_PAUSE_S), self._sweep)

    def close(self) -> None:
        """Closes all that are kept."""
        for idle in self._idle.values():
            for connection in idle:
                connection.close()
        self._idle.clear()
        self._trunks.close()
