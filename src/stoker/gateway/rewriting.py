"""Puts a reply through filters: a whole JSON text, or a stream of events, in whatever pieces it comes.

What no filter changes is passed on byte for byte. Both kinds stop where a filter has to know how many tokens a text has:
`question` then holds the texts, and `answer` goes on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from stoker.gateway.filters import ReplyPart

EVENT_LIMIT_BYTES = 512 * 1024
WHOLE_LIMIT_BYTES = 4 * 1024 * 1024
EVENT_END = re.compile(rb"\n\r?\n|\r\r")
DATA_LINE = re.compile(rb"(?:^|[\r\n])data: ?([^\r\n]*)")


class Rewriter(Protocol):
    """A reply on its way through filters."""

    question: tuple[str, ...]

    def feed(self, data: bytes) -> bytes:
        """Takes a piece and returns what can be passed on by now."""

    def answer(self, tokens: int | None) -> bytes:
        """Goes on after a question; None: nobody knows."""

    def end(self) -> bytes:
        """Returns what is left, once nothing more comes."""


class _Text:
    """One JSON text; `question` are the texts that some part has to have counted first."""

    def __init__(self, parts: Sequence[ReplyPart], raw: bytes) -> None:
        self._parts = parts
        self._raw = raw
        self._body = _decode(raw)
        asked = [part.read(self._body) for part in parts] if self._body is not None else []
        self.question = next((texts for texts in asked if texts), ())

    def encode(self, tokens: int | None = None) -> bytes:
        """Returns the text with what the parts change, or as it came."""
        if self._body is None:
            return self._raw
        changed = [part.change(self._body, tokens) for part in self._parts]
        return msgspec.json.encode(self._body) if any(changed) else self._raw


def _decode(raw: bytes) -> dict[str, Any] | None:
    try:
        body = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def _has_cue(parts: Sequence[ReplyPart], raw: bytes) -> bool:
    return any(cue in raw for part in parts for cue in part.cues)


class WholeReply:
    """A reply that is one JSON text; one that is too large for the memory it may take is passed on as it is."""

    def __init__(self, parts: Sequence[ReplyPart]) -> None:
        self.question: tuple[str, ...] = ()
        self._parts = parts
        self._pieces: list[bytes] = []
        self._held_bytes = 0
        self._passes = False
        self._text: _Text | None = None

    def feed(self, data: bytes) -> bytes:
        """Keeps the piece; returns all of them once they are too many."""
        if self._passes:
            return data
        self._pieces.append(data)
        self._held_bytes += len(data)
        if self._held_bytes <= WHOLE_LIMIT_BYTES:
            return b""
        self._passes = True
        return self._take()

    def _take(self) -> bytes:
        raw = b"".join(self._pieces)
        self._pieces.clear()
        return raw

    def end(self) -> bytes:
        """Returns the reply, or nothing where there is a question first."""
        raw = self._take()
        if not _has_cue(self._parts, raw):
            return raw
        self._text = _Text(self._parts, raw)
        self.question = self._text.question
        return b"" if self.question else self._text.encode()

    def answer(self, tokens: int | None) -> bytes:
        """Returns the reply."""
        self.question = ()
        return self._text.encode(tokens) if self._text else b""


class EventStream:
    """A stream of server-sent events; of each, the one line of data is what filters see."""

    def __init__(self, parts: Sequence[ReplyPart]) -> None:
        self.question: tuple[str, ...] = ()
        self._parts = parts
        self._rest = b""
        self._passes = False  # the event that is coming is too large to be kept
        self._ended = False
        self._held: tuple[bytes, _Text, bytes] = (b"", _Text((), b""), b"")

    def feed(self, data: bytes) -> bytes:
        """Returns the events that are whole by now."""
        self._rest += data
        return self._advance()

    def answer(self, tokens: int | None) -> bytes:
        """Returns the event that raised the question, and those behind it."""
        self.question = ()
        before, text, behind = self._held
        return b"".join((before, text.encode(tokens), behind, self._advance()))

    def end(self) -> bytes:
        """Returns what is left: whole events, and a last one that never ended as it came."""
        self._ended = True
        return self._advance()

    def _advance(self) -> bytes:
        out: list[bytes] = []
        at = 0
        while not self.question and (found := EVENT_END.search(self._rest, at)):
            out.append(self._rewrite(self._rest[at : found.end()]))
            at = found.end()
        self._rest = self._rest[at:]
        if not self.question:
            out.append(self._overflow())
        return b"".join(out)

    def _overflow(self) -> bytes:
        """Returns what must not be kept any longer: all at the end, else all but what may begin the end of an event."""
        if self._ended:
            kept = 0
        elif len(self._rest) > EVENT_LIMIT_BYTES:
            kept, self._passes = 2, True
        else:
            return b""
        cut = len(self._rest) - kept
        gone, self._rest = self._rest[:cut], self._rest[cut:]
        return gone

    def _rewrite(self, event: bytes) -> bytes:
        passes, self._passes = self._passes or len(event) > EVENT_LIMIT_BYTES, False
        if passes or not _has_cue(self._parts, event):
            return event
        lines = list(DATA_LINE.finditer(event))
        if len(lines) != 1:
            return event
        begin, end = lines[0].span(1)
        text = _Text(self._parts, event[begin:end])
        if not text.question:
            return b"".join((event[:begin], text.encode(), event[end:]))
        self.question = text.question
        self._held = event[:begin], text, event[end:]
        return b""
