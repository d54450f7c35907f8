"""The trunks that a door has to other boxes: one for each, opened when it is needed and closed when nobody uses it."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from functools import partial

from stoker.gateway.sealed import open_sealed
from stoker.gateway.trunk.channel import Channel
from stoker.gateway.trunk.frames import PROTOCOL
from stoker.gateway.trunk.trunk import Trunk

Address = tuple[str, int, str]  # host, port, and the pin of the box's certificate
# Over one that has been silent for longer nothing new is asked, since its cable may be out: another is opened, which tells.
HEARD_LIMIT_S = 2.0
CONNECT_LIMIT_S = 1.0  # a replica may answer instead, and a cable that was pulled out says nothing


class OldBox(OSError):
    """The box does not know trunks."""

    def __init__(self) -> None:
        super().__init__("its Stoker is older than this one; update it")


class Trunks:
    """By address: the one over which new channels are opened, which is opened once for all who wait for it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._all: set[Trunk] = set()
        self._newest: dict[Address, Trunk] = {}
        self._opening: defaultdict[Address, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def open(self, address: Address) -> Channel:
        """Returns a new channel to a box; raises OSError where the box is not reached, or is another."""
        trunk = self._usable(address)
        if trunk is None:
            async with asyncio.timeout(CONNECT_LIMIT_S), self._opening[address]:
                trunk = self._usable(address) or await self._connect(address)
        return trunk.open()

    def _usable(self, address: Address) -> Trunk | None:
        trunk = self._newest.get(address)
        if trunk is None or not trunk.is_usable or trunk.heard_at < self._loop.time() - HEARD_LIMIT_S:
            return None
        return trunk

    async def _connect(self, address: Address) -> Trunk:
        transport = await open_sealed(*address, PROTOCOL)
        if transport.get_extra_info("ssl_object").selected_alpn_protocol() != PROTOCOL:
            transport.abort()
            raise OldBox
        trunk = Trunk(HEARD_LIMIT_S, partial(self._forget, address))
        transport.set_protocol(trunk)
        trunk.connection_made(transport)
        self._all.add(trunk)
        self._newest[address] = trunk
        return trunk

    def _forget(self, address: Address, trunk: Trunk) -> None:
        self._all.discard(trunk)
        if self._newest.get(address) is trunk:
            del self._newest[address]

    def close(self) -> None:
        """Closes all, and what they carry."""
        for trunk in list(self._all):
            trunk.close()
