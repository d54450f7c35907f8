"""How many wrong keys may come from where.

From elsewhere, an address that showed too many is answered without a look at its keys; one that was let in from there before
still is, since many people may share an address. On loopback that would let any local program lock the owner out, so there
every key is looked at, and only wrong ones are told to wait.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network

from stoker.gateway.bucket import Bucket

WRONG_KEYS, PERIOD_S = 20, 60.0
MOST_REMEMBERED = 4096
LOOPBACK = "loopback"
logger = logging.getLogger("stoker.gateway")


class Attempts:
    """Remembers who showed wrong keys lately, and which keys were right."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failed: dict[str, Bucket] = {}
        self._known: dict[tuple[str, bytes], None] = {}
        self._told_at = -math.inf

    def wait_s(self, peer: str, digests: Iterable[bytes]) -> float:
        """Returns how long this address has to wait before its keys are looked at; 0.0: they are."""
        if not self._failed:
            return 0.0
        origin = origin_of(peer)
        bucket = self._failed.get(origin)
        if bucket is None or origin == LOOPBACK or any((origin, digest) in self._known for digest in digests):
            return 0.0
        return bucket.wait_s(self._clock())

    def fail(self, peer: str) -> float:
        """Counts a wrong key; returns how long its sender has to wait where there were too many."""
        origin, now = origin_of(peer), self._clock()
        bucket = self._failed.get(origin)
        if bucket is None:
            self._make_room(now)
            bucket = self._failed[origin] = Bucket(WRONG_KEYS, PERIOD_S)
        wait_s = bucket.take(now)
        if not wait_s and bucket.wait_s(now):
            self._tell(origin, now)
        return wait_s

    def _tell(self, origin: str, now: float) -> None:
        if now - self._told_at >= PERIOD_S:  # an attack must not fill the log
            self._told_at = now
            logger.warning("peer=%s showed %d wrong keys; the next ones wait", origin, WRONG_KEYS)

    def _make_room(self, now: float) -> None:
        if len(self._failed) >= MOST_REMEMBERED:
            self._failed = {origin: bucket for origin, bucket in self._failed.items() if not bucket.is_full(now)}
        if len(self._failed) >= MOST_REMEMBERED:
            self._failed.pop(next(iter(self._failed)))

    def succeed(self, peer: str, digests: Sequence[bytes]) -> None:
        """Remembers that a right key came from there."""
        origin = origin_of(peer)
        if origin == LOOPBACK or (origin, digests[0]) in self._known:
            return
        if len(self._known) >= MOST_REMEMBERED:
            self._known.pop(next(iter(self._known)))
        self._known |= {(origin, digest): None for digest in digests}


@lru_cache(MOST_REMEMBERED)
def origin_of(peer: str) -> str:
    """Returns what counts as one address: all of loopback, and the /64 that one IPv6 user has to himself."""
    try:
        address = ip_address(peer.partition("%")[0])
    except ValueError:  # a local socket has no address
        return LOOPBACK
    if isinstance(address, IPv6Address):
        address = address.ipv4_mapped or address
    if address.is_loopback:
        return LOOPBACK
    return str(address) if address.version == 4 else str(ip_network((address, 64), strict=False))
