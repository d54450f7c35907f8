"""A reply's body on its way from an engine to a client: passed on as it comes, its two ends kept for whoever reads them."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable

from stoker.gateway.framing import CRLF, Body, BrokenFraming, ChunkedBody, OpenBody, size_line

OPENING_BYTES, TAIL_PIECE_BYTES, TAIL_PIECES = 2 * 1024, 4 * 1024, 16
# What a token of an answer comes in, by the protocols' names; a stream's first events carry a role or a name alone.
TOKEN = re.compile(
    rb'"(?:content|reasoning_content|reasoning|text|thinking|delta|arguments|partial_json)"\s*:\s*"[^"]'
).search


class Passage(asyncio.Protocol):
    """Takes an engine's connection over from the head on.

    `write` gets what goes on: with the engine's chunks where `as_it_comes`, else without. `on_end`, `on_broken` and
    `on_lost` are called when the body is whole, is not HTTP, or when the connection has ended.
    `moved`: something came since it was last set to False. `first_at` is when a stream's first token came, or the first byte
    of any other body, on the event loop's clock; `is_stream` tells which.
    """

    def __init__(
        self, body: Body, write: Callable[[bytes], None], as_it_comes: bool, is_stream: bool, *,
        on_end: Callable[[], None], on_broken: Callable[[BrokenFraming], None],
        on_lost: Callable[[Exception | None], None],
    ) -> None:  # fmt: skip
        self.moved = False
        self.first_at: float | None = None
        self.opening = b""
        self._body = body
        self._chunks = body if as_it_comes and isinstance(body, ChunkedBody) else None
        self._take = body.feed if as_it_comes else body.decode
        self._write = write
        self.is_stream = is_stream
        self._on_end, self._on_broken, self._on_lost = on_end, on_broken, on_lost
        self._pieces: deque[bytes] = deque(maxlen=TAIL_PIECES)
        self._keep = self._pieces.append

    @property
    def tail(self) -> bytes:
        """The last bytes of the body, framing included."""
        return b"".join(self._pieces)[-TAIL_PIECE_BYTES:]

    def data_received(self, data: bytes) -> None:
        """Passes on what came, in one write."""
        self.moved = True
        self._keep(data if len(data) <= TAIL_PIECE_BYTES else data[-TAIL_PIECE_BYTES:])
        chunks = self._chunks
        # One event as an engine writes it is most of all that ever comes. Spelled out, since a call costs as much as this.
        if (
            chunks is not None and chunks.is_between and self.first_at is not None
            and data.startswith(size_line(len(data))) and data.endswith(CRLF)
        ):  # fmt: skip
            self._write(data)
        else:
            self._pass(data)

    def _pass(self, data: bytes) -> None:
        if self.first_at is None and data:
            self.opening += data[: OPENING_BYTES - len(self.opening)]
            if not self.is_stream or len(self.opening) == OPENING_BYTES or TOKEN(data):
                self.first_at = asyncio.get_running_loop().time()
        try:
            self._write(self._take(data))
        except BrokenFraming as problem:
            self._on_broken(problem)
        else:
            if self._body.done:
                self._on_end()

    def connection_lost(self, error: Exception | None) -> None:
        """Tells that no more comes."""
        self._on_lost(error)


class Tunnel(Passage):
    """Both ways of a connection that has switched to another protocol; `hold` stops the client while the engine is full."""

    def __init__(
        self, hold: Callable[[bool], None], write: Callable[[bytes], None], on_lost: Callable[[Exception | None], None]
    ) -> None:
        super().__init__(OpenBody(), write, True, False, on_end=_never, on_broken=_never, on_lost=on_lost)
        self._hold = hold

    def pause_writing(self) -> None:
        """The engine reads more slowly than the client writes."""
        self._hold(True)

    def resume_writing(self) -> None:
        """The engine has caught up."""
        self._hold(False)


def _never(*_: object) -> None:
    """Is not called: whatever comes belongs to a tunnel, and only the end of its connection ends it."""
