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
# A box is asked whether it is there before anything is sent: a cable that was pulled out says nothing, and what was sent
# into it could not be given to a replica instead.
ANSWER_LIMIT_S = 1.0
AGAIN_S = 0.3  # a packet that asks for a connection may be lost, and TCP itself asks again after a whole second
IDLE_S = 2.0


class OldBox(OSError):
    """The box does not know trunks."""

    def __init__(self) -> None:
        super().__init__("its Stoker is older than this one; update it")


class Trunks:
    """By address: the one over which new channels are opened, which is opened once for all who wait for it."""

    def __init__(self) -> None:
        self._all: set[Trunk] = set()
        self._newest: dict[Address, Trunk] = {}
        self._is_closed = False
        self._opening: defaultdict[Address, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def open(self, address: Address) -> Channel:
        """Returns a new channel to a box that is there; raises OSError where it is not reached, or is another."""
        trunk = await self._ask(address)
        if trunk is None:
            async with asyncio.timeout(ANSWER_LIMIT_S), self._opening[address]:
                trunk = self._usable(address) or await self._connect(address)
        return trunk.open()

    async def _ask(self, address: Address) -> Trunk | None:
        """Returns the trunk whose other end has just said that it is there; None where there is none."""
        trunk = self._usable(address)
        if trunk is None:
            return None
        try:
            async with asyncio.timeout(ANSWER_LIMIT_S):
                await trunk.ask()
        except TimeoutError:
            self._leave(address, trunk)
            raise
        return self._usable(address)

    def _usable(self, address: Address) -> Trunk | None:
        trunk = self._newest.get(address)
        return None if trunk is None or trunk.has_ended or not trunk.has_room else trunk

    def _leave(self, address: Address, trunk: Trunk) -> None:
        if self._newest.get(address) is trunk:
            del self._newest[address]

    async def _connect(self, address: Address) -> Trunk:
        try:
            async with asyncio.timeout(AGAIN_S):
                transport = await open_sealed(*address, PROTOCOL)
        except TimeoutError:
            transport = await open_sealed(*address, PROTOCOL)
        if transport.get_extra_info("ssl_object").selected_alpn_protocol() != PROTOCOL:
            transport.abort()
            raise OldBox
        trunk = Trunk(IDLE_S, partial(self._forget, address))
        transport.set_protocol(trunk)
        trunk.connection_made(transport)
        if self._is_closed:
            trunk.abort()
        self._all.add(trunk)
        self._newest[address] = trunk
        return trunk

    def _forget(self, address: Address, trunk: Trunk) -> None:
        self._all.discard(trunk)
        self._leave(address, trunk)

    def close(self) -> None:
        """Closes all, and what they carry."""
        self._is_closed = True
        for trunk in list(self._all):
            trunk.close()
