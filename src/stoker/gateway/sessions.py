"""Who is logged in at the dashboard: once by the control key, then by a cookie that no script reads and a word of its page.

A cookie goes to every port of a host, so a program at another port may get to see it; the word lies in the page's own
storage, which belongs to one port, and without it nothing is changed.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import NamedTuple

import msgspec

from stoker.gateway.exchange import Request
from stoker.gateway.keyring import DASHBOARD, Caller, Denial
from stoker.records.dashboard import SavedSession

LASTS_S = 7 * 24 * 3600.0
MOST = 200
SAFE = frozenset({"GET", "HEAD"})
WORD = b"x-stoker-word"
HERE = frozenset({None, b"same-origin", b"none"})  # where a browser says a request comes from; older ones do not say
BROWSER = Caller(DASHBOARD)
OVER = Denial(401, "session_over", "This session is over: log in again.")
FOREIGN = Denial(403, "foreign_origin", "Only the dashboard's own page may ask with its cookie.", "permission_error")
WORDLESS = Denial(403, "no_word", "The dashboard's word is missing or wrong: log in again.", "permission_error")
LOOKS_ON = Denial(403, "read_only", "This session only looks on; nothing was changed.", "permission_error")


class Opened(NamedTuple):
    """A session that begins: what the browser keeps for itself, what the page keeps, and until when."""

    cookie: bytes
    word: str
    expires: float


def _forget(sessions: list[SavedSession]) -> None:
    return None


class Sessions:
    """All sessions, of which only digests are kept; `keep` writes them down for a next daemon.

    `reads_only`: none of them changes anything.
    """

    def __init__(
        self, control_key: str, saved: Iterable[SavedSession] = (), keep: Callable[[list[SavedSession]], None] = _forget,
        *, reads_only: bool = False, by_tls: bool = False, wall: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        # Of two Stokers on one host each has a cookie of its own, and with another key all former sessions are over.
        self._name = b"stoker-" + sha256(b"cookie of " + control_key.encode()).hexdigest()[:12].encode()
        self._sessions = {one.cookie: one for one in saved if one.name == self._name.decode()}
        self._keep = keep
        self.reads_only = reads_only
        self._suffix = b"; Path=/; HttpOnly; SameSite=Strict" + (b"; Secure" if by_tls else b"")
        self._wall = wall

    def open(self, *, looks_on: bool = False) -> Opened:
        """Begins a session; one that looks on changes nothing."""
        now, cookie, word = self._wall(), secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        session = SavedSession(
            self._name.decode(), _digest(cookie.encode()), _digest(word.encode()), now + LASTS_S, looks_on or self.reads_only
        )
        living = [one for one in self._sessions.values() if one.expires > now][-MOST + 1 :]
        self._sessions = {one.cookie: one for one in (*living, session)}
        self._keep(list(self._sessions.values()))
        header = b"%s=%s; Max-Age=%d%s" % (self._name, cookie.encode(), LASTS_S, self._suffix)
        return Opened(header, word, session.expires)

    def close(self, request: Request) -> bytes:
        """Ends the session of a request; returns the header that takes its cookie from the browser."""
        if self._sessions.pop(_digest(self._cookie(request) or b""), None) is not None:
            self._keep(list(self._sessions.values()))
        return b"%s=; Max-Age=0%s" % (self._name, self._suffix)

    def find(self, request: Request) -> SavedSession | None:
        """Returns the session of a request; None where it has none, or one that is over."""
        cookie = self._cookie(request)
        found = None if cookie is None else self._sessions.get(_digest(cookie))
        if found is None or found.expires <= self._wall():
            return None
        return msgspec.structs.replace(found, looks_on=True) if self.reads_only else found

    def who(self, request: Request) -> Caller | Denial | None:
        """Returns who asks by a cookie, or why that is refused; None for a request without one."""
        if self._cookie(request) is None:
            return None
        session = self.find(request)
        if session is None:
            return OVER
        if request.header(b"sec-fetch-site") not in HERE:
            return FOREIGN
        if request.method in SAFE:
            return BROWSER
        return self.refuse_change(request, session) or (LOOKS_ON if session.looks_on else BROWSER)

    def refuse_change(self, request: Request, session: SavedSession) -> Denial | None:
        """Returns why a request that changes something was not sent by the page itself; None where it was."""
        if not comes_from_here(request):
            return FOREIGN
        word = request.header(WORD) or b""
        return None if hmac.compare_digest(_digest(word), session.word) else WORDLESS

    def _cookie(self, request: Request) -> bytes | None:
        for header, value in request.headers:
            if header == b"cookie":
                for pair in value.split(b";"):
                    name, _, cookie = pair.partition(b"=")
                    if name.strip() == self._name:
                        return cookie.strip()
        return None


def comes_from_here(request: Request) -> bool:
    """Tells whether a browser says that a page of this very host and port sent it; the scheme may be a proxy's."""
    origin, host = request.header(b"origin"), request.header(b"host")
    return origin is not None and host is not None and origin.partition(b"://")[2].lower() == host.strip().lower()


def _digest(text: bytes) -> str:
    return sha256(text).hexdigest()
