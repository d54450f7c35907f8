"""What this box tells the doors that are linked to it: its services as they change, and a word every half second."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import msgspec

from stoker.gateway.directory import Entry
from stoker.gateway.exchange import Exchange
from stoker.records.boxes import BoxHealth, BoxService, BoxWord

# A change is told within a quarter of a second, and who hears nothing for three words takes the box for away.
LOOK_S, WORD_EVERY = 0.25, 2
SLOW_WORDS = 20  # a follower that does not read for so many words is cut: its door asks anew
KIND = [(b"content-type", b"application/jsonl"), (b"cache-control", b"no-store")]


class Words:
    """Speaks to all who follow; one look at the services serves them all.

    `tokens` returns what is in flight at one, `health` how this box's machine does.
    """

    def __init__(
        self, entries: Callable[[], list[Entry]], tokens: Callable[[str], int], health: Callable[[], BoxHealth]
    ) -> None:
        self._all = entries
        self._tokens, self._health = tokens, health
        self._followers: dict[Exchange, int] = {}  # and for how many words each has not read
        self._timer: asyncio.TimerHandle | None = None
        self._told: list[Entry] | None = None
        self._looks = 0

    def follow(self, exchange: Exchange) -> None:
        """Tells one more from now on, all of it first."""
        ended = exchange.on_done

        def leave() -> None:
            self._followers.pop(exchange, None)
            ended()

        exchange.on_done = leave
        exchange.start(200, KIND, None)
        self._followers[exchange] = 0
        entries = self._entries()
        exchange.write(self._word(entries))
        if self._timer is None:
            self._told = entries
            self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def is_followed(self, exchange: Exchange) -> bool:
        """Tells whether this one still listens."""
        return exchange in self._followers

    def _entries(self) -> list[Entry]:
        return [one for one in self._all() if one.alias_of is None]

    def _look(self) -> None:
        self._timer = None
        if not self._followers:
            return
        self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._look)
        self._looks += 1
        entries = self._entries()
        if entries != self._told:
            self._told = entries
            self._say(self._word(entries))
        elif self._looks % WORD_EVERY == 0:
            self._say(_line(BoxWord(tokens=self._flight(entries), health=self._health())))

    def _say(self, word: bytes) -> None:
        for exchange, unread in list(self._followers.items()):
            if not exchange.paused:
                self._followers[exchange] = 0
                exchange.write(word)
            elif unread < SLOW_WORDS:
                self._followers[exchange] = unread + 1
                self._told = None  # what it missed is said again, to all
            else:
                exchange.abort()

    def _word(self, entries: list[Entry]) -> bytes:
        now = time.time()
        return _line(BoxWord(tuple(_tell(one, now) for one in entries), self._flight(entries), self._health()))

    def _flight(self, entries: list[Entry]) -> dict[str, int]:
        return {one.service: self._tokens(one.service) for one in entries if one.endpoint is not None}


def _line(word: BoxWord) -> bytes:
    return msgspec.json.encode(word) + b"\n"


def _tell(one: Entry, now: float) -> BoxService:
    return BoxService(
        one.service, one.model, one.state, max(0.0, now - one.since), one.why, one.endpoint is not None, one.retry_after_s,
        one.context_tokens, one.revision, one.plan_id, one.abilities, one.filters,
    )  # fmt: skip
