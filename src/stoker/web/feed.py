"""One picture of everything for all open pages: made while somebody looks, told in pieces, and only those that changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator

import msgspec

from stoker.records.dashboard import Shown

PAUSE_S = 0.5
QUIET_S = 15.0  # a page that hears nothing for longer takes the daemon for gone
LIFE_S = 600.0  # then the page asks again, and shows its session again: one that was ended hears no more
STILL_HERE = b"event: still\ndata: here\n\n"


class _Piece(msgspec.Struct):
    version: int
    text: msgspec.Raw


class Feed:
    """Whoever follows it renews the picture if it is old; one look serves all who came meanwhile."""

    def __init__(self, look: Callable[[], Awaitable[Shown]]) -> None:
        self._look = look
        self._looking = asyncio.Lock()
        self._looked_at = float("-inf")
        self._version = 0
        self._pieces: dict[str, _Piece] = {}
        self._events: dict[int, bytes] = {}

    async def follow(self) -> AsyncGenerator[bytes]:
        """Yields events: everything first, then what changed since the last one; what a slow reader missed is not kept."""
        loop = asyncio.get_running_loop()
        seen, end_s, spoke_s = 0, loop.time() + LIFE_S, loop.time()
        while loop.time() < end_s:
            await self._renew()
            if self._version > seen:
                seen, spoke_s, event = self._version, loop.time(), self._event(seen)
                yield event
            elif loop.time() - spoke_s >= QUIET_S:
                spoke_s = loop.time()
                yield STILL_HERE
            await asyncio.sleep(PAUSE_S)

    async def _renew(self) -> None:
        async with self._looking:
            now = asyncio.get_running_loop().time()
            if now - self._looked_at < PAUSE_S * 0.9:
                return
            self._take(await self._look())
            self._looked_at = asyncio.get_running_loop().time()

    def _take(self, shown: Shown) -> None:
        fresh = dict(_pieces(shown))
        changed = [name for name, text in fresh.items() if name not in self._pieces or self._pieces[name].text != text]
        if not changed and fresh.keys() == self._pieces.keys():
            return
        self._version += 1
        self._events.clear()
        for name in self._pieces.keys() - fresh.keys():
            del self._pieces[name]
        for name in changed:
            self._pieces[name] = _Piece(self._version, fresh[name])

    def _event(self, seen: int) -> bytes:
        """Returns what changed since a version, and the names of all there is: what is not among them is gone."""
        if seen not in self._events:
            changed = {name: piece.text for name, piece in self._pieces.items() if piece.version > seen}
            body = msgspec.json.encode({"whole": seen == 0, "names": list(self._pieces), "pieces": changed})
            self._events[seen] = b"data: " + body + b"\n\n"
        return self._events[seen]


def _pieces(shown: Shown) -> Iterator[tuple[str, msgspec.Raw]]:
    for name in ("daemon", "machine", "alerts", "lost", "switch", "fix"):
        yield name, msgspec.Raw(msgspec.json.encode(getattr(shown, name)))
    for card in shown.services:
        yield f"service/{card.name}", msgspec.Raw(msgspec.json.encode(card))
    for box in shown.boxes:
        yield f"box/{box.name}", msgspec.Raw(msgspec.json.encode(box))
