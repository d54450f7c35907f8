"""What Python and its event loop cost by themselves: passes bytes on between client and engine, and parses nothing."""

from __future__ import annotations

import asyncio
import gc
import sys
from typing import cast

import uvloop

BACKLOG = 4096


class EngineSide(asyncio.Protocol):
    """A connection to the engine."""

    def __init__(self, client: asyncio.Transport) -> None:
        self._client = client
        self._write = client.write

    def data_received(self, data: bytes) -> None:
        """Passes a piece of the reply on."""
        self._write(data)

    def connection_lost(self, error: Exception | None) -> None:
        """Ends the client's connection, too."""
        self._client.close()


class ClientSide(asyncio.Protocol):
    """A client's connection, which gets one of its own to the engine."""

    def __init__(self, engine_port: int) -> None:
        self._engine_port = engine_port
        self._engine: asyncio.Transport | None = None
        self._held: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connects to the engine."""
        self._transport = cast(asyncio.Transport, transport)
        self._task = asyncio.ensure_future(self._connect())

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        self._engine, _ = await loop.create_connection(lambda: EngineSide(self._transport), "127.0.0.1", self._engine_port)
        self._engine.writelines(self._held)

    def data_received(self, data: bytes) -> None:
        """Passes a piece of a request on."""
        if self._engine is None:
            self._held.append(data)
        else:
            self._engine.write(data)

    def connection_lost(self, error: Exception | None) -> None:
        """Ends the engine's connection, too."""
        if self._engine is not None:
            self._engine.abort()


async def serve(port: int, engine_port: int) -> None:
    """Relays until it is ended."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: ClientSide(engine_port), "127.0.0.1", port, backlog=BACKLOG)
    gc.freeze()
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), int(sys.argv[2].rpartition(":")[2])))
