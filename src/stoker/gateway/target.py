"""A request's target in absolute form, as a client writes it that takes its server for a proxy (RFC 9112, 3.2.2)."""

from __future__ import annotations

import re

from stoker.gateway.exchange import Headers

ABSOLUTE = re.compile(rb"https?://([^/?#]*)(.*)", re.IGNORECASE | re.DOTALL)


def origin_form(target: bytes, headers: Headers, http_version: str) -> tuple[bytes, Headers]:
    """Returns the path and query of a target, and headers whose `Host` is what it named, whatever they said before.

    A request of HTTP/1.1 that lacks a `Host` goes on lacking it, for which it is refused.
    """
    found = ABSOLUTE.fullmatch(target)
    if found is None:
        return target, headers
    host, rest = found.groups()
    named = [(name, host if name == b"host" else value) for name, value in headers]
    if http_version == "1.0" and all(name != b"host" for name, _ in headers):
        named.append((b"host", host))
    return rest if rest.startswith(b"/") else b"/" + rest, named
