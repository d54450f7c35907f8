"""The trunks that other boxes' doors have to this one: few channels and little time for one that has shown no key yet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from stoker.gateway.connection import ClientConnection, Keeper, Limits
from stoker.gateway.exchange import Exchange, Headers
from stoker.gateway.keyring import Denial
from stoker.gateway.trunk.frames import BrokenTrunk
from stoker.gateway.trunk.trunk import Trunk

# In all. A door shows its key with its first request, but that is known only once its body has come, before which others
# of a burst may have begun; each costs some 30 us.
STRANGERS_CHANNELS = 512
IDLE_LIMIT_S = 30.0  # a door closes one that it does not use long before


class Host(Keeper, Protocol):
    """Who answers what comes over links."""

    def answer(self, exchange: Exchange) -> bool:
        """Answers a whole request; returns whether its key was a link's."""


class Guest:
    """Keeps one trunk, and the connections in it."""

    def __init__(self, host: Host, limits: Limits, on_lost: Callable[[Guest], None]) -> None:
        self._host, self._limits, self._on_lost = host, limits, on_lost
        self._is_known = False
        self._left = STRANGERS_CHANNELS
        self.trunk = Trunk(IDLE_LIMIT_S, self._end, self._let_in)
        self._timer = asyncio.get_running_loop().call_later(limits.head_s, self._end_stranger)

    def _let_in(self) -> ClientConnection:
        if not self._is_known and not self._left:
            raise BrokenTrunk(f"{STRANGERS_CHANNELS} channels were opened and no key was shown")
        self._left -= not self._is_known
        return ClientConnection(self, self._limits)

    def _end_stranger(self) -> None:
        if not self._is_known:
            self.trunk.abort()

    def _end(self, _: Trunk) -> None:
        self._timer.cancel()
        self._on_lost(self)

    # What connections ask of their keeper.

    def register(self, connection: ClientConnection, is_open: bool) -> None:
        """Counts none: a trunk bounds its channels, and what counts as a connection here is the trunk."""

    def deny_stranger(self, headers: Headers, peer: str) -> Denial | None:
        """Returns why a large body is not read."""
        denial = self._host.deny_stranger(headers, peer)
        self._is_known |= denial is None
        return denial

    def refuse_unread(self, exchange: Exchange, denial: Denial) -> None:
        """Answers a request that was not read to its end."""
        self._host.refuse_unread(exchange, denial)

    def handle(self, exchange: Exchange) -> None:
        """Answers a whole request."""
        self._is_known |= self._host.answer(exchange)
