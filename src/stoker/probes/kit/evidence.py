"""Keeps what was asked and answered: bounded, without secrets, and as a line for curl."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from stoker.probes.kit.wire import Call, Reply
from stoker.records import Exchange

KEPT_CHARACTERS = 4000
TAIL_CHARACTERS = 1000
HIDDEN = "$STOKER_KEY"
# What names a session or a user; a key in any other place is found by its text.
SECRET_HEADERS = frozenset({"set-cookie", "cookie", "proxy-authorization"})


def keep(call: Call, reply: Reply, secrets: Iterable[str]) -> Exchange:
    """Returns one request and its reply as they may be kept."""
    hidden = tuple(secrets)
    return Exchange(
        method=call.method,
        url=hide(call.url, hidden),
        headers=_headers(call.headers.items(), hidden),
        body=_text(call.body, hidden),
        status=reply.status,
        reply_headers=_headers(reply.headers.items(), hidden),
        reply=_text(reply.body, hidden),
        took_s=round(reply.took_s, 4),
        first_byte_s=round(reply.arrivals[0][0], 4) if reply.arrivals else None,
        problem=hide(reply.problem, hidden),
    )


def _headers(headers: Iterable[tuple[str, str]], secrets: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, "(left out)" if name.lower() in SECRET_HEADERS else cut(hide(value, secrets))) for name, value in headers
    )


def _text(raw: bytes, secrets: tuple[str, ...]) -> str:
    # Before it is cut: half a key would not be found.
    return cut(hide(raw.decode(errors="replace"), secrets))


def hide(text: str, secrets: Iterable[str]) -> str:
    """Returns a text without the keys; the longest first, since one may be the beginning of another."""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def cut(text: str, kept: int = KEPT_CHARACTERS) -> str:
    """Returns the text, or its beginning and end where it is long."""
    if len(text) <= kept:
        return text
    tail = min(TAIL_CHARACTERS, kept // 4)
    return f"{text[: kept - tail]} [... {len(text) - kept} characters left out ...] {text[-tail:]}"


def render_curl(exchange: Exchange) -> str:
    """Returns the words that ask the same again; the key is taken from the shell's variable STOKER_KEY."""
    words = ["curl", "-sS", "-i", "-N", *(("-X", exchange.method) if exchange.method != "POST" else ()), exchange.url]
    line = shlex.join(words)
    for name, value in exchange.headers:
        line += f' -H "{name}: {value}"' if HIDDEN in value else f" -H {shlex.quote(f'{name}: {value}')}"
    return line + (f" --data-raw {shlex.quote(exchange.body)}" if exchange.body else "")
