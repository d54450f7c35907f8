"""Which host names are this gateway's: a page that got the user's browser to ask here under another name is refused."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from stoker.gateway.cors import cors_headers
from stoker.gateway.exchange import Exchange
from stoker.gateway.refusals import refuse

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


@lru_cache(256)
def _named(host: bytes) -> str:
    return normalise(host.decode("latin-1"))


class Hosts:
    """The names by which this gateway may be called, and the origins whose web pages may ask it."""

    def __init__(self, bound: str, allowed: Iterable[str], origins: Iterable[str]) -> None:
        self._names = known_hosts(bound, allowed)
        self._origins = frozenset(origin.lower().encode() for origin in origins)

    def let_in(self, exchange: Exchange) -> bool:
        """Refuses what a web page may have made the user's browser send (DNS rebinding, cross-site requests)."""
        hosts = [value for name, value in exchange.request.headers if name == b"host"]
        if len(hosts) > 1 or (not hosts and exchange.request.http_version == "1.1"):
            refuse(exchange, 400, "malformed_request", "An HTTP/1.1 request names one host (RFC 9112, 3.2).")
            return False
        if hosts and _named(hosts[0]) not in self._names:
            message = f"The host {hosts[0].decode('latin-1')!r} is not one of this gateway's (gateway.allowed_hosts)."
            refuse(exchange, 403, "foreign_host", message, kind="permission_error")
            return False
        origin = exchange.request.header(b"origin")
        if origin is None:
            return True
        if self.welcome(exchange):  # this host's other ports are other origins too
            return True
        if normalise(origin.decode("latin-1").partition("://")[2]) in self._names:
            return True
        message = "Web pages of other sites may not ask here (gateway.cors_origins)."
        refuse(exchange, 403, "foreign_origin", message, kind="permission_error")
        return False

    def welcome(self, exchange: Exchange) -> bool:
        """Lets a page of an origin that is named read the answer; returns whether it is one."""
        origin = exchange.request.header(b"origin")
        if origin is None or origin.lower() not in self._origins:
            return False
        exchange.extra = [*exchange.extra, *cors_headers(origin)]
        return True
