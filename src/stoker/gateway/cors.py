"""Lets web pages of named origins ask; all others are refused."""

from __future__ import annotations

from stoker.gateway.exchange import Exchange, Headers
from stoker.gateway.routes import SERVICE, UPSTREAM

ALLOW, ALLOW_WITHIN = b"GET, HEAD, POST, OPTIONS", b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
EXPOSED = b"x-request-id, x-stoker-service, x-stoker-model, x-stoker-revision, x-stoker-plan, x-stoker-filters, retry-after"
KEEP_S = 600


def cors_headers(origin: bytes) -> Headers:
    """Returns what lets a page of an allowed origin read an answer."""
    return [(b"access-control-allow-origin", origin), (b"vary", b"origin"), (b"access-control-expose-headers", EXPOSED)]


def answer_options(exchange: Exchange) -> None:
    """Answers OPTIONS, a browser's question before a request included; it carries no key and asks nobody."""
    allowed = ALLOW_WITHIN if exchange.request.path.startswith((SERVICE, UPSTREAM, "/api/")) else ALLOW
    headers: Headers = [(b"allow", allowed)]
    if exchange.request.header(b"origin") is not None:
        wanted = exchange.request.header(b"access-control-request-headers") or b"authorization, content-type"
        headers += [
            (b"access-control-allow-methods", allowed),
            (b"access-control-allow-headers", wanted),
            (b"access-control-max-age", b"%d" % KEEP_S),
        ]
    exchange.reply(204, headers, b"")
