"""Tells who comes over a link: a trunk of another box's door, or a single connection, as joining and looking need."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from stoker.gateway.trunk.frames import PROTOCOL

Make = Callable[[], asyncio.Protocol]


class Greeting(asyncio.Protocol):
    """The protocol of a connection until TLS has said what will be spoken."""

    def __init__(self, make_single: Make, make_trunk: Make) -> None:
        self._make_single, self._make_trunk = make_single, make_trunk

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Hands the connection on."""
        tls = transport.get_extra_info("ssl_object")
        protocol = self._make_trunk() if tls.selected_alpn_protocol() == PROTOCOL else self._make_single()
        cast(asyncio.Transport, transport).set_protocol(protocol)
        protocol.connection_made(transport)
