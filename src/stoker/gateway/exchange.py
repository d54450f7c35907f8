"""One request and its reply, as the rest of the gateway sees them."""

from __future__ import annotations

import http
from collections.abc import Callable
from itertools import chain
from typing import NamedTuple, Protocol

from stoker.gateway.keyring import Denial
from stoker.gateway.late import late_event
from stoker.gateway.usage import Usage

Headers = list[tuple[bytes, bytes]]

EVENTS = b"text/event-stream; charset=utf-8"
BODILESS = frozenset({204, 304})
REASONS = {status.value: status.phrase.encode() for status in http.HTTPStatus}


class Request(NamedTuple):
    """A whole request; header names are lower case, `target` is what was asked for as it was written, with its query.

    `is_websocket`: it offers to go on as a WebSocket.
    """

    method: str
    path: str
    query: bytes
    headers: Headers
    body: bytes | bytearray
    http_version: str
    keep_alive: bool
    target: bytes = b""
    is_websocket: bool = False

    @property
    def is_json(self) -> bool:
        """Tells whether the body is not said to be a form, as uploads of sounds and pictures are."""
        return not (self.header(b"content-type") or b"").lower().startswith(b"multipart/")

    def header(self, name: bytes) -> bytes | None:
        """Returns the first header of that name."""
        for key, value in self.headers:
            if key == name:
                return value
        return None


class Wire(Protocol):
    """What an exchange needs from its connection."""

    @property
    def peer(self) -> str:
        """The client's address; empty where there is none."""

    def write(self, data: bytes) -> None:
        """Sends bytes to the client."""

    def finish(self, keep_alive: bool) -> None:
        """Ends the reply; the next request may come if `keep_alive`."""

    def hold(self, is_full: bool) -> None:
        """Reads no more from the client until there is room for it again."""

    def break_off(self) -> None:
        """Closes after what was written, so that the client gets all of it."""

    def abort(self) -> None:
        """Cuts the connection, so that the client sees that the reply is not whole."""


def _nothing() -> None:
    return None


def render_lines(headers: Headers) -> bytes:
    """Returns headers as they are sent, each with its line's end."""
    return b"%s: %s\r\n" * len(headers) % tuple(chain.from_iterable(headers))


class Exchange:
    """Writes one reply. Whoever writes it may set the three callbacks to learn of the client."""

    # What it begins with; most of it never changes.
    status: int | None = None
    broken: int | None = None  # what the status would have been, had the reply not begun when it broke off
    done = False
    left = False  # the client, before the reply was whole
    paused = False
    is_sized = False
    request_id = b""
    usage: Usage | None = None
    on_bytes: Callable[[bytes], None] | None = None  # a tunnel's: what the client sends after its request
    on_cut: Callable[[Denial], bool] | None = None  # says in the stream under way why it ends; returns whether it could
    waits = False  # it was told to wait for a stream, and no reply has begun
    _chunked = False
    _as_it_comes = False
    _said_early = False
    _late: bytearray | None = None  # a reply that is no stream, to a client that was promised one

    def __init__(self, request: Request, wire: Wire, extra: Headers) -> None:
        self.request = request
        self.on_gone: Callable[[], None] = _nothing
        self.on_pause: Callable[[], None] = _nothing
        self.on_resume: Callable[[], None] = _nothing
        self.on_done: Callable[[], None] = _nothing
        self._wire = wire
        self.extra = extra
        self._silent = request.method == "HEAD"  # or a status that has no body

    def say(self, comment: str, headers: Headers) -> None:
        """Sends a comment to a client that waits for a stream; from now on an error comes as an event of that stream.

        The first one sends the head, with what headers are known by then.
        """
        if self.status is None:
            self.start(200, [(b"content-type", EVENTS), (b"cache-control", b"no-cache"), *headers], None)
            self._said_early = self.waits = True
            # The head says nothing of a compressed body, so there must be none.
            plain = [pair for pair in self.request.headers if pair[0] != b"accept-encoding"]
            self.request = self.request._replace(headers=plain)
        self.write(b": %s\n\n" % comment.encode())

    def note_broken(self, status: int) -> None:
        """Notes as what a reply under way is about to be broken off."""
        self.broken = status

    @property
    def outcome(self) -> int | None:
        """How it ended, as a status: that of what broke it off, or of its reply; None where there was neither."""
        return self.broken or self.status

    @property
    def peer(self) -> str:
        """The client's address; empty where there is none."""
        return self._wire.peer

    def start(self, status: int, headers: Headers, length: int | None) -> None:
        """Sends the head; `length` None means a body of unknown length."""
        if self._said_early:
            self.status, self.waits = status, False
            kind = dict(headers).get(b"content-type", b"")
            self._late = None if status == http.HTTPStatus.OK and kind.startswith(b"text/event-stream") else bytearray()
            return
        self.status = status
        self.is_sized = length is not None
        bodiless = status in BODILESS
        self._silent = self._silent or bodiless
        head = [b"HTTP/1.1 %d %s\r\n" % (status, REASONS.get(status, b"Unknown")), render_lines(headers + self.extra)]
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
        if self._late is not None:
            self._late += data
        elif data and not self._silent and not self.done:
            self._wire.write(b"%x\r\n%s\r\n" % (len(data), data) if self._chunked else data)

    def chunk_writer(self) -> Callable[[bytes], None] | None:
        """Returns what sends a body that is in chunks already, the last one included; None where the client takes none."""
        self._as_it_comes = self._chunked and not self._said_early
        return self._wire.write if self._as_it_comes else None

    def open_tunnel(self, headers: Headers, on_bytes: Callable[[bytes], None]) -> Callable[[bytes], None]:
        """Passes bytes on as they come from here on, both ways; returns what sends to the client."""
        self.status, self.on_bytes = 101, on_bytes
        switched = b"HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n"
        self._wire.write(switched + render_lines(headers + self.extra) + b"\r\n")
        self._wire.hold(False)  # it was held back if it asked before its turn
        return self._wire.write

    def hold(self, is_full: bool) -> None:
        """Holds the client back while what it sends has nowhere to go."""
        self._wire.hold(is_full)

    def end_chunks(self, closing: bytes | None) -> bool:
        """Ends the chunk that broke off; returns whether more can be written, which it cannot where a length was said."""
        if self.is_sized or (self._as_it_comes and closing is None):
            return False
        if self._as_it_comes:
            self._wire.write(closing or b"")
            self._as_it_comes = False
        return True

    def end(self) -> None:
        """Ends the reply cleanly."""
        if self._late is not None and not self.done:
            self._end_late(bytes(self._late))
        if not self.done:
            self._close()
            if self._chunked and not self._as_it_comes:
                self._wire.write(b"0\r\n\r\n")
            sized = self._chunked or self.request.http_version == "1.1"
            self._wire.finish(self.request.keep_alive and sized)

    def _end_late(self, whole: bytes) -> None:
        self._late = None
        self.write(late_event(self.request.path, self.status or 0, whole))
        if self.status != http.HTTPStatus.OK:
            self.break_off()

    def abort(self) -> None:
        """Ends the reply so that the client sees that it is not whole."""
        if not self.done:
            self._close()
            self._wire.abort()

    def break_off(self) -> None:
        """Closes after what was written, which says why, and without the reply's end."""
        if not self.done:
            self._close()
            self._wire.break_off()

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
            self.done = self.left = True
            self.on_gone()  # first: the engine is let go before somebody else's turn comes
            self._close()

    def _close(self) -> None:
        self.done = True
        self.on_done()
        # Bodies are large: they are to go now, and not when the collector of cycles comes round.
        self.on_gone = self.on_pause = self.on_resume = self.on_done = _nothing
        self.on_cut = None

    def reply(self, status: int, headers: Headers, body: bytes) -> None:
        """Sends a whole reply."""
        self.start(status, headers, len(body))
        self.write(body)
        self.end()
