"""One connection to an engine."""

from __future__ import annotations

import asyncio
import select
from typing import Protocol, cast

from stoker.gateway.trunk.trunks import Address

LINGER_S = 5.0
WRITE_BUFFER_BYTES = 64 * 1024


class Keeper(Protocol):
    """Who keeps connections for a next request."""

    def keep(self, connection: EngineConnection) -> None:
        """Keeps a connection whose reply is whole."""

    def forget(self, connection: EngineConnection) -> None:
        """Learns that a connection has ended."""


class EngineConnection(asyncio.Protocol):
    """One connection to an engine; whoever has a request under way on it is its protocol meanwhile.

    `is_uvicorn`: as it said in its last reply, the engine's server closes none on which nothing was asked yet.
    """

    def __init__(self, address: Address, keeper: Keeper) -> None:
        self.address = address
        self.is_uvicorn = False
        self.idle_since = 0.0
        self._keeper = keeper
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
        self._keeper.forget(self)

    def is_quiet(self) -> bool:
        """Tells whether the engine has neither closed nor spoken, as of now and not of when the event loop looked last."""
        # A microsecond; a request that goes out on a connection just closed would be lost.
        return not self.transport.is_closing() and not self._look.poll(0)

    def give_back(self, is_uvicorn: bool) -> None:
        """Keeps the connection for another request."""
        self.is_uvicorn = is_uvicorn
        self.transport.set_protocol(self)
        self._keeper.keep(self)

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
