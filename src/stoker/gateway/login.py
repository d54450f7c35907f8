"""The dashboard's door: its page is for everybody, since nothing is in it; a session begins with the control key."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from stoker.gateway.exchange import Exchange, Headers, Request
from stoker.gateway.keyring import Caller, Denial
from stoker.gateway.meter import refuse_denied
from stoker.gateway.refusals import JSON, refuse
from stoker.gateway.routes import CONTROL
from stoker.gateway.sessions import FOREIGN, HERE, Sessions, comes_from_here
from stoker.records.dashboard import SessionView

PAGE, SESSION = "/page/", "/page/session"
# Chats are asked with the cookie too; whatever else a key opens may be a page of an engine's own, with scripts in it.
CHAT = "/v1/chat/completions"
LOOKS_ON = b"looks-on"
KEYS = (b"authorization", b"x-api-key")
UNCACHED = (b"cache-control", b"no-store")
UNSNIFFED = (b"x-content-type-options", b"nosniff")
Ask = Callable[[], Caller | None]


def is_page(path: str) -> bool:
    """Tells whether a path is the dashboard's page or one of its files."""
    return path == "/" or path.startswith(PAGE)


def may_use_session(request: Request) -> bool:
    """Tells whether a cookie opens what is asked for; a request with a key is told by that."""
    has_key = any(name in KEYS for name, _ in request.headers)
    return not has_key and (request.path.startswith(CONTROL) or (request.path == CHAT and request.method == "POST"))


def answer_session(exchange: Exchange, sessions: Sessions, ask_key: Ask) -> None:
    """Answers what the page asks of its session: whether there is one (GET), that one begins (POST), or ends (DELETE).

    `ask_key` returns who showed the control key, or None once it has answered that nobody did.
    """
    method = exchange.request.method
    if method in ("GET", "HEAD"):
        found = sessions.find(exchange.request)
        view = SessionView(False) if found is None else SessionView(True, found.looks_on, found.expires)
        _reply(exchange, view, [])
    elif method == "POST":
        _open(exchange, sessions, ask_key)
    elif method == "DELETE":
        _close(exchange, sessions)
    else:
        message = f"{SESSION} takes GET, POST and DELETE."
        refuse(exchange, 405, "method_not_allowed", message, headers=[(b"allow", b"GET, HEAD, POST, DELETE")])


def _open(exchange: Exchange, sessions: Sessions, ask_key: Ask) -> None:
    request = exchange.request
    if request.header(b"sec-fetch-site") not in HERE or (request.header(b"origin") and not comes_from_here(request)):
        refuse_denied(exchange, FOREIGN)
    elif ask_key() is not None:
        opened = sessions.open(looks_on=request.query == LOOKS_ON)
        looks_on = request.query == LOOKS_ON or sessions.reads_only
        _reply(exchange, SessionView(True, looks_on, opened.expires, opened.word), [(b"set-cookie", opened.cookie)])


def _close(exchange: Exchange, sessions: Sessions) -> None:
    session = sessions.find(exchange.request)
    denial: Denial | None = None if session is None else sessions.refuse_change(exchange.request, session)
    if denial is not None:
        refuse_denied(exchange, denial)
    else:
        _reply(exchange, SessionView(False), [(b"set-cookie", sessions.close(exchange.request))])


def _reply(exchange: Exchange, view: SessionView, headers: Headers) -> None:
    exchange.reply(200, [JSON, UNCACHED, UNSNIFFED, *headers], msgspec.json.encode(view))
