"""Which doors of other boxes may come here, each by the key of its link."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from hashlib import sha256
from math import ceil

from stoker.gateway.attempts import Attempts
from stoker.gateway.exchange import Headers
from stoker.gateway.keyring import Denial
from stoker.records.boxes import LetIn

KEY_LIMIT_BYTES = 512
STRANGER = "This box knows no link with this key: `stoker boxes add` on the box that asks joins it anew."


class LinkRing:
    """Knows the keys of links by their digests; what the time of a look-up tells is about those."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._doors: dict[str, LetIn] = {}
        self._attempts = Attempts(clock)

    def load(self, doors: Iterable[LetIn]) -> None:
        """Knows these doors and no others from now on."""
        self._doors = {door.digest: door for door in doors}

    def who(self, headers: Headers, peer: str) -> LetIn | Denial:
        """Returns whose door asks from the address `peer`, or why it is refused."""
        shown = next((value for name, value in headers if name == b"authorization"), b"")
        key = shown.partition(b" ")[2].strip()
        digest = sha256(key[:KEY_LIMIT_BYTES]).digest()
        if wait_s := self._attempts.wait_s(peer, [digest]):
            return self.too_many(wait_s)
        found = self._doors.get(digest.hex())
        if found is not None:
            self._attempts.succeed(peer, [digest])
            return found
        return self.fail(peer) or Denial(401, "unknown_link", STRANGER)

    def wait_s(self, peer: str) -> float:
        """Returns how long an address has to wait that was wrong too often."""
        return self._attempts.wait_s(peer, ())

    def fail(self, peer: str) -> Denial | None:
        """Counts a wrong key or code; returns what its sender is told where there were too many."""
        wait_s = self._attempts.fail(peer)
        return self.too_many(wait_s) if wait_s else None

    def too_many(self, wait_s: float) -> Denial:
        """Returns what is told to who was wrong too often."""
        said = f"Too many wrong keys or codes came from this address; try again in {ceil(wait_s)} s."
        return Denial(429, "too_many_wrong_keys", said, "rate_limit_error", ceil(wait_s))
