"""Cuts a log of any size and any encoding into blocks of whole lines, and never holds more than a few of them."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import NamedTuple, Protocol

BLOCK_BYTES = 2**20
# A line that is longer goes on in the next block, which begins with so much of its end that no sign is cut in two.
OVERLAP_BYTES = 4096
MARKS = ((codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
LEAST_TO_GUESS = 64


class Source(Protocol):
    """Whatever gives bytes: a file, a pipe, what another program prints."""

    def read(self, size: int, /) -> bytes:
        """Returns at most so many bytes, none at the end."""


class Block(NamedTuple):
    """Whole lines, the last one perhaps unfinished, and the number of the first of them."""

    data: bytes
    first_line: int


def read_blocks(source: Source) -> Iterator[Block]:
    """Yields all of a log in order, as UTF-8 or whatever bytes it has instead."""
    line, rest = 1, b""
    for new in _decoded(source):
        data = rest + new
        end = data.rfind(b"\n") + 1
        if not end and len(data) < BLOCK_BYTES:
            rest = data
            continue
        whole, rest = (data[:end], data[end:]) if end else (data, data[-OVERLAP_BYTES:])
        yield Block(whole, line)
        line += whole.count(b"\n")
    if rest:
        yield Block(rest, line)


def _decoded(source: Source) -> Iterator[bytes]:
    first = source.read(BLOCK_BYTES)
    encoding = _guess(first)
    decode = codecs.getincrementaldecoder(encoding)(errors="replace") if encoding else None
    while first:
        yield decode.decode(first).encode(errors="replace") if decode else first
        first = source.read(BLOCK_BYTES)


def _guess(first: bytes) -> str | None:
    """Windows' PowerShell writes UTF-16: by its mark, or where every other byte of the beginning is none."""
    for mark, name in MARKS:
        if first.startswith(mark):
            return name
    head = first[: 2 * LEAST_TO_GUESS]
    if len(head) == 2 * LEAST_TO_GUESS and head.count(0) >= LEAST_TO_GUESS:
        return "utf-16-le" if not any(head[1::2]) else "utf-16-be" if not any(head[::2]) else None
    return None
