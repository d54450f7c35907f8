"""Which host names are this gateway's: a page that got the user's browser to ask here under another name is refused."""

from __future__ import annotations

from collections.abc import Iterable

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
ANY_ADDRESS = frozenset({"0.0.0.0", "::"})


def normalise(host: str) -> str:
    """Returns a host name alone: without port and brackets, in lower case, without a final dot."""
    name = host.strip().lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    if name.count(":") == 1:
        name = name.partition(":")[0]
    return name.removesuffix(".")


def known_hosts(bound: str, allowed: Iterable[str]) -> frozenset[str]:
    """Returns the names by which this gateway may be called."""
    return LOOPBACK | {normalise(bound)} | {normalise(host) for host in allowed}


def is_loopback(host: str) -> bool:
    """Tells whether only this machine reaches an address."""
    return normalise(host) in LOOPBACK or normalise(host).startswith("127.")


def reachable(bound: str) -> str:
    """Returns an address of this machine at which a server bound to `bound` answers."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(bound, bound)
