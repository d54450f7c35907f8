"""Tells who comes over a link: a trunk of another box's door, or a single connection, as joining and looking need."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from stoker.gateway.trunk.frames import PROTOCOL
from stoker.gateway.trunk.trunk import Trunk

IDLE_LIMIT_S = 30.0  # of a trunk over which nobody speaks; a door closes its own long before


class Greeting(asyncio.Protocol):
    """The protocol of a connection until TLS has said what will be spoken; `trunks` has those that are open."""

    def __init__(self, accept: Callable[[], asyncio.Protocol], trunks: set[Trunk]) -> None:
        self._accept, self._trunks = accept, trunks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Hands the connection on."""
        tls = transport.get_extra_info("ssl_object")
        if tls.selected_alpn_protocol() == PROTOCOL:
            trunk = Trunk(IDLE_LIMIT_S, self._trunks.discard, self._accept)
            self._trunks.add(trunk)
            protocol: asyncio.Protocol = trunk
        else:
            protocol = self._accept()
        cast(asyncio.Transport, transport).set_protocol(protocol)
        protocol.connection_made(transport)
