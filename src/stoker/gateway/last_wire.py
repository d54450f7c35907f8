"""The wire of a connection's last reply: the connection lingers instead of closing."""

from __future__ import annotations

import asyncio


class LastWire:
    """Writes, and leaves everything else to the connection."""

    def __init__(self, transport: asyncio.Transport, peer: str) -> None:
        self.write = transport.write
        self.peer = peer

    def finish(self, keep_alive: bool) -> None:
        """Leaves the closing to the connection."""

    def hold(self, is_full: bool) -> None:
        """Leaves what comes to the connection."""

    def break_off(self) -> None:
        """Leaves the closing to the connection."""

    def abort(self) -> None:
        """Leaves the closing to the connection."""
