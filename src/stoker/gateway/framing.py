"""Follows a reply's body as it comes, so that it can be passed on as it is and its end is still known to the byte."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Protocol

SIZE_LINE = re.compile(rb"([0-9a-fA-F]{1,15})[ \t]*(?:;[^\r\n]*)?")
LINE_LIMIT_BYTES = 8 * 1024
CLOSING_LIMIT_BYTES = 1024 * 1024
CRLF = b"\r\n"
LAST_CHUNK = b"0\r\n\r\n"
FULL_CHUNK = re.compile(rb"([1-9a-fA-F][0-9a-fA-F]{0,7})\r\n").match


class BrokenFraming(Exception):
    """The engine's bytes are not HTTP."""


class Body(Protocol):
    """One reply's body. `rest` is what came after its end, which nobody asked for."""

    done: bool
    rest: bytes

    def feed(self, data: bytes) -> bytes:
        """Returns what of this and of what was held back may be passed on as it is; raises BrokenFraming."""

    def decode(self, data: bytes) -> bytes:
        """Returns what it carries, without framing; a body is either fed or decoded. Raises BrokenFraming."""


@lru_cache(1024)
def size_line(chunk_bytes: int) -> bytes:
    """Returns the line with which a chunk begins that is so long, this line and its end included; no chunk begins with b"?".

    What begins so and ends with CRLF is one whole chunk as engines write it, which most of all that ever comes is.
    """
    for digits in range(1, 9):
        held_bytes = chunk_bytes - digits - 2 * len(CRLF)
        line = b"%x\r\n" % max(held_bytes, 0)
        if held_bytes > 0 and len(line) == digits + len(CRLF):
            return line
    return b"?"


class ChunkedBody:
    """A body in chunks (RFC 9112, 7.1).

    A line that has not come whole is held back, and so is the last chunk until its trailers have come: a reply that breaks
    off has not ended yet for whoever got what was passed on. `is_between`: nothing is under way or held back, so that a
    whole chunk may be passed on without being fed.
    """

    def __init__(self) -> None:
        self.done = False
        self.rest = b""
        self._held = b""
        self._left = 0  # of the chunk that is under way, with the line end that closes it
        self._in_trailer = False
        self.is_between = True  # none of the three

    def feed(self, data: bytes) -> bytes:
        """Returns what may be passed on, chunk sizes and trailers included."""
        if self.is_between and self._is_whole(data):
            return data
        passed = self._walk(data)
        self.is_between = not (self._left or self._held)
        return passed

    def _is_whole(self, data: bytes) -> bool:
        """Tells whether this is whole chunks as engines write them, and perhaps the last one without trailers."""
        at, size = 0, len(data)
        while at < size:
            found = FULL_CHUNK(data, at)
            if found is None:
                self.done = data[at:] == LAST_CHUNK
                return self.done
            at = found.end() + int(found[1], 16) + len(CRLF)
            if data[at - len(CRLF) : at] != CRLF:
                return False
        return True

    def _walk(self, data: bytes) -> bytes:
        if self._held:
            data, self._held = self._held + data, b""
        at, size, last = self._left, len(data), 0
        _check_end(data, at)
        while at < size and not self.done:
            line, after = self._line(data, at)
            if line is None:
                break
            if not self._in_trailer:
                last = at
            at = self._read(line, after)
            _check_end(data, at)
        self._left = max(0, at - size)
        if self._in_trailer and (at if self.done else size) - last > LINE_LIMIT_BYTES:
            raise BrokenFraming("trailers that do not end")
        if self._in_trailer and not self.done:
            at, self._in_trailer = last, False
        return self._cut(data, min(at, size))

    def decode(self, data: bytes) -> bytes:
        """Returns what the chunks hold."""
        if self._held:
            data, self._held = self._held + data, b""
        pieces, at, size = [], 0, len(data)
        while at < size and not self.done:
            if self._left:
                pieces.append(data[at : at + max(0, self._left - len(CRLF))])
                _check_end(data, at + self._left)
                taken = min(self._left, size - at)
                self._left, at = self._left - taken, at + taken
                continue
            line, after = self._line(data, at)
            if line is None:
                break
            self._left, at = self._read(line, after) - after, after
        self._cut(data, at)
        return b"".join(pieces)

    def closing(self) -> bytes | None:
        """Returns what ends the chunk under way, for a reply that broke in it: empty lines, which SSE passes over.

        None where that would be too much.
        """
        if not self._left:
            return b""
        if self._left > CLOSING_LIMIT_BYTES:
            return None
        missing = CRLF[-self._left :] if self._left < len(CRLF) else b"\n" * (self._left - len(CRLF)) + CRLF
        self._left = 0
        return missing

    def _line(self, data: bytes, at: int) -> tuple[bytes | None, int]:
        end = data.find(CRLF, at)
        if max(end, len(data)) - at > LINE_LIMIT_BYTES and not at <= end <= at + LINE_LIMIT_BYTES:
            raise BrokenFraming("a chunk's size that does not end")
        return (None, at) if end < 0 else (data[at:end], end + len(CRLF))

    def _read(self, line: bytes, after: int) -> int:
        """Takes a line's meaning; returns where the next line begins."""
        if self._in_trailer:
            self.done = not line
            return after
        found = SIZE_LINE.fullmatch(line)
        if found is None:
            raise BrokenFraming(f"{line[:40]!r} is no chunk's size")
        length = int(found[1], 16)
        self._in_trailer = not length
        return after + length + len(CRLF) if length else after

    def _cut(self, data: bytes, at: int) -> bytes:
        if at == len(data):
            return data
        if self.done:
            self.rest = data[at:]
        else:
            self._held = data[at:]
        return data[:at]


def _check_end(data: bytes, at: int) -> None:
    """Checks what of a chunk's line end lies in the data, where the chunk and its line end reach to `at`."""
    missing = max(0, at - len(data))
    if at and data[max(0, at - len(CRLF)) : at] != CRLF[max(0, len(CRLF) - at) : max(0, len(CRLF) - missing)]:
        raise BrokenFraming("a chunk does not end where its size says")


class SizedBody:
    """A body of a length that was said."""

    def __init__(self, length_bytes: int) -> None:
        self.done = not length_bytes
        self.rest = b""
        self._left = length_bytes

    def feed(self, data: bytes) -> bytes:
        """Returns what belongs to it."""
        if len(data) > self._left:
            data, self.rest = data[: self._left], data[self._left :]
        self._left -= len(data)
        self.done = not self._left
        return data

    decode = feed


class OpenBody:
    """A body that ends with its connection."""

    done = False
    rest = b""

    def feed(self, data: bytes) -> bytes:
        """Returns all of it."""
        return data

    decode = feed
