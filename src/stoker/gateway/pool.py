"""Connections to engines: opened when needed, kept for the next request for a moment, and opened anew for the one after."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from itertools import takewhile

from stoker.gateway.engine_connection import EngineConnection
from stoker.gateway.trunk.trunks import Address, Trunks
from stoker.records import Endpoint

CONNECT_TRIES = 2
CONNECT_LIMIT_S = 5.0
# Engines that keep connections close them after 5 s (uvicorn under vLLM and SGLang). One that is reused well before cannot
# be closing just then, so no request goes out on a connection of which nobody could say whether it was still read.
REUSE_LIMIT_S = 2.0
# Not one by one, nor many at once: each takes 0.1 ms to close, for which streams wait.
SWEEP_PAUSE_S = 0.02


class Pool:
    """The connections that are kept for a next request, and those that are open already and were never asked."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._trunks = Trunks()
        # In the order in which they were given back: the last one is used next, the first one has waited longest.
        self._idle: defaultdict[Address, dict[EngineConnection, None]] = defaultdict(dict)
        self._fresh: defaultdict[Address, dict[EngineConnection, None]] = defaultdict(dict)
        self._owed: Counter[Address] = Counter()
        self._renewal: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def take(self, endpoint: Endpoint) -> EngineConnection | None:
        """Returns the connection that was used last, if it may still be used, or one that was opened ahead."""
        address, oldest = (endpoint.host, endpoint.port, endpoint.pin), self._loop.time() - REUSE_LIMIT_S
        for kept, since in ((self._idle.get(address), oldest), (self._fresh.get(address), 0.0)):
            while kept:
                connection, _ = kept.popitem()
                if connection.idle_since >= since and connection.is_quiet():
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
        for kept in (self._idle, self._fresh):
            kept.get(connection.address, {}).pop(connection, None)

    def _sweep(self) -> None:
        now = self._loop.time()
        for address, idle in list(self._idle.items()):
            for connection in list(takewhile(lambda one: one.idle_since <= now - REUSE_LIMIT_S, idle)):
                del idle[connection]
                connection.close()
                if connection.is_uvicorn:
                    self._owed[address] += 1
            if not idle:
                del self._idle[address]
        due = min((next(iter(idle)).idle_since + REUSE_LIMIT_S for idle in self._idle.values()), default=None)
        self._timer = None if due is None else self._loop.call_at(max(due, now + SWEEP_PAUSE_S), self._sweep)
        if self._renewal is None and self._owed:
            self._renewal = self._loop.create_task(self._renew())

    async def _renew(self) -> None:
        """Opens as many as grew too old, one after another, so that a next crowd finds its connections open."""
        # uvloop takes one new connection in each turn of its loop (libuv#3696), and a turn of a server that writes
        # 200 streams lasts 30 ms: of 256 requests on new connections a tenth waited 2 s for vLLM's first token. uvicorn
        # counts its 5 s from a reply on, so what was never asked stays open.
        while self._owed:
            address = next(iter(self._owed))
            try:
                connection = await self._open(address)
            except OSError:  # the engine has left
                del self._owed[address]
                continue
            self._fresh[address][connection] = None
            self._owed -= Counter([address])
        self._renewal = None

    def close(self) -> None:
        """Closes all that are kept."""
        if self._renewal is not None:
            self._renewal.cancel()
        for kept in (self._idle, self._fresh):
            for connections in kept.values():
                for connection in connections:
                    connection.close()
            kept.clear()
        self._trunks.close()
