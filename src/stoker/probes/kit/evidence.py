"""Keeps what was asked and answered: bounded, without secrets, and as a line for curl."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping

from stoker.probes.kit.wire import Call, Reply
from stoker.records import Exchange

KEPT_CHARACTERS = 4000
CUT = re.compile(r" \[\.\.\. \d+ characters left out \.\.\.\] ")
TAIL_CHARACTERS = 1000
PIECE_CHARACTERS = 12
HIDDEN, HIDDEN_ENGINE = "$STOKER_KEY", "$STOKER_ENGINE_KEY"
Secrets = Mapping[str, str]  # each key, and the shell's variable that is shown in its place
# What names a session or a user; a key in any other place is found by its text.
SECRET_HEADERS = frozenset({"set-cookie", "cookie", "proxy-authorization"})


def keep(call: Call, reply: Reply, secrets: Secrets) -> Exchange:
    """Returns one request and its reply as they may be kept."""
    return Exchange(
        method=call.method,
        url=hide(call.url, secrets),
        headers=_headers(call.headers.items(), secrets),
        body=_text(call.body, secrets),
        status=reply.status,
        reply_headers=_headers(reply.headers.items(), secrets),
        reply=_text(reply.body, secrets),
        took_s=round(reply.took_s, 4),
        first_byte_s=round(reply.arrivals[0][0], 4) if reply.arrivals else None,
        problem=hide(reply.problem, secrets),
    )


def _headers(headers: Iterable[tuple[str, str]], secrets: Secrets) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, "(left out)" if name.lower() in SECRET_HEADERS else cut(hide(value, secrets))) for name, value in headers
    )


def _text(raw: bytes, secrets: Secrets) -> str:
    # Before it is cut: half a key would not be found.
    return cut(hide(raw.decode(errors="replace"), secrets))


def hide(text: str, secrets: Secrets) -> str:
    """Returns a text without the keys; the longest first, since one may be the beginning of another."""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, secrets[secret])
    return text


def hide_pieces(text: str, secrets: Secrets) -> str:
    """Returns a text without the keys, and without what is left of one in a text that was cut before."""
    text = hide(text, secrets)
    return hide(text, {_beginning(text, secret): shown for secret, shown in secrets.items()})


def _beginning(text: str, secret: str) -> str:
    """Returns the longest beginning of a secret that is in a text, unless that is too short to be of use."""
    return next((secret[:size] for size in range(len(secret), PIECE_CHARACTERS - 1, -1) if secret[:size] in text), "")


def cut(text: str, kept: int = KEPT_CHARACTERS) -> str:
    """Returns the text, or its beginning and end where it is long."""
    if len(text) <= kept:
        return text
    tail = min(TAIL_CHARACTERS, kept // 4)
    return f"{text[: kept - tail]} [... {len(text) - kept} characters left out ...] {text[-tail:]}"


def is_cut(text: str) -> bool:
    """Tells whether a kept text is not the whole of what was sent."""
    return CUT.search(text) is not None


def render_curl(exchange: Exchange) -> str:
    """Returns the words that ask the same again; keys are taken from the shell's STOKER_KEY and STOKER_ENGINE_KEY."""
    words = ["curl", "-sS", "-i", "-N", *(("-X", exchange.method) if exchange.method != "POST" else ()), exchange.url]
    line = shlex.join(words)
    for name, value in exchange.headers:
        line += (
            f' -H "{name}: {value}"'
            if HIDDEN in value or HIDDEN_ENGINE in value
            else f" -H {shlex.quote(f'{name}: {value}')}"
        )
    return line + (f" --data-raw {shlex.quote(exchange.body)}" if exchange.body else "")
