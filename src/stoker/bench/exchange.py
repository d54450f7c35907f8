"""One request and its reply as it came: framed by HTTP, and nothing more; what it says is read when it is over."""

from __future__ import annotations

from typing import NamedTuple

import httptools

from stoker.bench.stamps import Read

OK = CONTINUES = 200  # statuses below are no answer yet
TOO_LONG_BYTES = 256 * 1024**2


class Job(NamedTuple):
    """A request to be sent: whole, as it goes over the wire; `due_s` after the begin, None: as soon as its turn comes.

    It asks for `new_tokens`; its prompt is `prompt_tokens`, None where that is not surely known. It is turn `turn` of the
    talk `talk`: the next one is asked for when this one is answered.
    """

    request: bytes
    new_tokens: int = 0
    prompt_tokens: int | None = None
    due_s: float | None = None
    talk: int = 0
    turn: int = 0


class Piece(NamedTuple):
    """A part of a body, and when it had come, on the clock of `time.perf_counter`."""

    at_s: float
    data: bytes


class Exchange:
    """A job under way, or over: `problem` says in words what went wrong below the level of HTTP's statuses."""

    def __init__(self, job: Job, sent_s: float) -> None:
        self.job = job
        self.sent_s = self.heard_s = sent_s
        self.due_s: float | None = None
        self.pieces: list[Piece] = []
        self.status: int | None = None
        self.encoding = ""
        self.done_s: float | None = None
        self.problem = ""
        self.retry_after = ""
        self.keeps_alive = self.is_silent = False
        self.lags_s: list[float] = []
        self._is_bounded = False
        self._bytes = 0
        self._parser = httptools.HttpResponseParser(self)

    @property
    def is_over(self) -> bool:
        """Tells whether nothing more is expected of it."""
        return self.done_s is not None or bool(self.problem)

    def take(self, read: Read) -> None:
        """Takes what came; no data is the connection's end."""
        self.heard_s = read.at_s
        if read.lag_s is not None:
            self.lags_s.append(read.lag_s)
        if not read.data:
            self._end()
            return
        try:
            self._parser.feed_data(read.data)
        except httptools.HttpParserError as problem:
            if not self.is_over:
                self.problem = f"what it speaks is no HTTP that clients understand: {problem}"
            self.keeps_alive = False

    def fall_silent(self, limit_s: float) -> None:
        """Ends it, since nothing came for so long; what said that it is all, is all, though the connection stays open."""
        self.is_silent = True
        tail = b"".join(piece.data for piece in self.pieces[-2:])
        if self.status == OK and tail.rstrip().endswith(b"data: [DONE]"):
            self.done_s = self.heard_s
        elif self.status is None:
            self.problem = f"no answer began within {limit_s:g} s"
        else:
            self.problem = f"it fell silent for {limit_s:g} s in the middle of its answer"

    def _end(self) -> None:
        """The connection is closed: that ends a body without a length, and breaks off any other."""
        if self.status is not None and not self._is_bounded and not self.is_over:
            self.done_s = self.heard_s
        elif not self.is_over:
            self.problem = "it closed the connection before its answer was over"
        self.keeps_alive = False

    # What the parser tells.

    def on_header(self, name: bytes, value: bytes) -> None:
        """Notes what frames and what packs the body."""
        known = name.lower()
        if known in (b"content-length", b"transfer-encoding"):
            self._is_bounded = True
        elif known == b"content-encoding":
            self.encoding = value.decode("latin-1")
        elif known == b"retry-after":
            self.retry_after = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Notes the status."""
        self.status = self._parser.get_status_code()

    def on_body(self, data: bytes) -> None:
        """Keeps the part with its time."""
        self._bytes += len(data)
        if self._bytes > TOO_LONG_BYTES:
            self.problem = f"its answer is over {TOO_LONG_BYTES // 1024**2} MiB, and was read no further"
            return
        self.pieces.append(Piece(self.heard_s, data))

    def on_message_complete(self) -> None:
        """The reply is whole, unless it only said that one may go on."""
        if (self.status or 0) >= CONTINUES:
            self.done_s = self.heard_s
            self.keeps_alive = self._parser.should_keep_alive()

    def body(self) -> bytes:
        """Returns all of the body."""
        return b"".join(piece.data for piece in self.pieces)
