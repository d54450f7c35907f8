"""One request and its reply, as the rest of the gateway sees them."""

from __future__ import annotations

import http
from collections.abc import Callable
from typing import NamedTuple, Protocol

from stoker.gateway.usage import Usage

Headers = list[tuple[bytes, bytes]]

BODILESS = frozenset({204, 304})
REASONS = {status.value: status.phrase.encode() for status in http.HTTPStatus}


class Request(NamedTuple):
    """A whole request; header names are lower case."""

    method: str
    path: str
    query: bytes
    headers: Headers
    body: bytes
    http_version: str
    keep_alive: bool

    def header(self, name: bytes) -> bytes | None:
        """Returns the first header of that name."""
        return next((value for key, value in self.headers if key == name), None)


class Wire(Protocol):
    """What an exchange needs from its connection."""

    @property
    def peer(self) -> str:
        """The client's address; empty where there is none."""

    def write(self, data: bytes) -> None:
        """Sends bytes to the client."""

    def finish(self, keep_alive: bool) -> None:
        """Ends the reply; the next request may come if `keep_alive`."""

    def abort(self) -> None:
        """Cuts the connection, so that the client sees that the reply is not whole."""


def _nothing() -> None:
    return None


class Exchange:
    """Writes one reply. Whoever writes it may set the three callbacks to learn of the client."""

    def __init__(self, request: Request, wire: Wire, extra: Headers) -> None:
        self.request = request
        self.status: int | None = None
        self.done = False
        self.on_gone: Callable[[], None] = _nothing
        self.on_pause: Callable[[], None] = _nothing
        self.on_resume: Callable[[], None] = _nothing
        self.on_done: Callable[[], None] = _nothing
        self.paused = False
        self._wire = wire
        self.extra = extra
        self.usage: Usage | None = None
        self._chunked = False
        self._silent = request.method == "HEAD"  # or a status that has no body

    @property
    def peer(self) -> str:
        """The client's address; empty where there is none."""
        return self._wire.peer

    def start(self, status: int, headers: Headers, length: int | None) -> None:
        """Sends the head; `length` None means a body of unknown length."""
        self.status = status
        bodiless = status in BODILESS
        self._silent = self._silent or bodiless
        head = [b"HTTP/1.1 %d %s\r\n" % (status, REASONS.get(status, b"Unknown"))]
        head += [b"%s: %s\r\n" % pair for pair in (*headers, *self.extra)]
        if bodiless:
            pass
        elif length is not None:
            head.append(b"content-length: %d\r\n" % length)
        elif self.request.http_version == "1.1":
            self._chunked = not self._silent
            head.append(b"transfer-encoding: chunked\r\n")
        if not self._keeps_alive(0 if bodiless else length):
            head.append(b"connection: close\r\n")
        self._wire.write(b"".join((*head, b"\r\n")))

    def _keeps_alive(self, length: int | None) -> bool:
        return self.request.keep_alive and (length is not None or self.request.http_version == "1.1")

    def write(self, data: bytes) -> None:
        """Sends a piece of the body."""
        if data and not self._silent and not self.done:
            self._wire.write(b"%x\r\n%s\r\n" % (len(data), data) if self._chunked else data)

    def end(self) -> None:
        """Ends the reply cleanly."""
        if not self.done:
            self._close()
            if self._chunked:
                self._wire.write(b"0\r\n\r\n")
            sized = self._chunked or self.request.http_version == "1.1"
            self._wire.finish(self.request.keep_alive and sized)

    def abort(self) -> None:
        """Ends the reply so that the client sees that it is not whole."""
        if not self.done:
            self._close()
            self._wire.abort()

    def pause(self) -> None:
        """Tells whoever writes the reply to wait; whoever begins to write it later looks at `paused`."""
        self.paused = True
        self.on_pause()

    def resume(self) -> None:
        """Tells whoever writes the reply to go on."""
        self.paused = False
        self.on_resume()

    def gone(self) -> None:
        """Tells whoever writes the reply that the client has left."""
        if not self.done:
            self._close()
            self.on_gone()

    def _close(self) -> None:
        self.done = True
        self.on_done()

    def reply(self, status: int, headers: Headers, body: bytes) -> None:
        """Sends a whole reply."""
        self.start(status, headers, len(body))
        self.write(body)
        self.end()
