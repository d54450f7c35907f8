"""Finds signs in blocks of a log. One pass looks for the texts that signs cannot do without; only their lines meet patterns.

A log repeats itself: lines that differ in digits alone are tried some times, and after that as often as a block ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from stoker.diagnose.anchors import find_anchors
from stoker.diagnose.blocks import Block
from stoker.supervise.logs import ESCAPES

LINES = bytes.maketrans(b"\r", b"\n")  # each state of a progress bar is a line of its own
# Hexadecimal digits tell request from request and address from address; two sentences never differ in them alone.
DROPPED = b"0123456789abcdefABCDEF"
NO_ENDS = bytes(code for code in range(256) if code not in b"\r\n")
MOST_KEYS = 100_000
NEWS = 20  # so often lines with one key are tried; from then on they are taken to say what the last one of each block says
DULL, NEVER = 4, -1  # so often where they said nothing, and then never
MANY = 500  # of anchors in a block: where there are more, it is looked first which of its lines are the same
PIECE, OVERLAP = 16384, 1024  # SGLang 0.5.16 says all its arguments in one line of 14 kB
STEP = PIECE - OVERLAP
# What a client asked for or a model wrote is no sign of anything, whatever it says.
QUOTED = re.compile(r"""Received request|\b(?:prompt|output): ['"]|["'](?:content|prompt|text|input)["']: """)


Match = tuple[int, int, int]  # an anchor's number, where it begins, where it ends


class Sign(NamedTuple):
    """A pattern with what it stands for: a kind of sign, and of which rule, engine or fact."""

    kind: str
    name: str
    pattern: re.Pattern[str]
    anchors: tuple[str, ...]


class Hit(NamedTuple):
    """A sign that was found, with the piece of the line in which it was."""

    sign: Sign
    line: int
    text: str
    found: re.Match[str]


class Piece(NamedTuple):
    """A line that a sign may be in, or a part of a very long one; `held` are the anchors that were found there."""

    begin: int
    end: int
    held: Sequence[Match]


@cache
def make_sign(kind: str, name: str, pattern: str) -> Sign:
    """Returns a sign; its pattern needs a run of characters that each match holds."""
    anchors = find_anchors(pattern)
    if not anchors:
        raise ValueError(f"no match of {pattern!r} is sure to hold four characters in a row")
    return Sign(kind, name, re.compile(pattern), anchors)


class Scanner:
    """Finds the hits of signs in one log's blocks, in the order of its lines."""

    def __init__(self, signs: Iterable[Sign]) -> None:
        self._signs = list(signs)
        by_anchor: dict[str, list[int]] = {}
        for place, sign in enumerate(self._signs):
            for anchor in sign.anchors:
                by_anchor.setdefault(anchor, []).append(place)
        self._of_anchor = list(by_anchor.values())
        from ahocorasick_rs import BytesAhoCorasick, Implementation  # here: the daemon knows signs and reads no log

        self._search = BytesAhoCorasick([one.encode() for one in by_anchor], implementation=Implementation.DFA)
        self._times: dict[int, int] = {}  # how often lines were tried, by the hash of their key
        self._repeats = False

    def scan(self, block: Block) -> list[Hit]:
        """Returns the hits in one block."""
        text = block.data.translate(LINES) if b"\r" in block.data else block.data
        if b"\x1b" in text:
            text = ESCAPES.sub(b"", text)  # as a terminal shows it
        if len(self._times) > MOST_KEYS:
            self._times.clear()
        news = self._news(text) if self._repeats else None
        lines = _Lines(block, text if news is None else news.text, None if news is None else news.places)
        found = self._search.find_matches_as_indexes(lines.text.lower(), overlapping=True)
        self._repeats = news is not None or len(found) > MANY
        pieces = list(_pieces(lines.text, found))
        keys = [hash(lines.text[one.begin : one.end].translate(None, DROPPED)) for one in pieces]
        if news is not None:
            self._times |= dict.fromkeys(news.unknown.difference(keys), NEVER)
        last = dict(zip(keys, range(len(keys)), strict=True))
        hits: list[Hit] = []
        for place, (key, piece) in enumerate(zip(keys, pieces, strict=True)):
            times = self._times.get(key, 0)
            if times != NEVER and (times < NEWS or last[key] == place):
                hits += self._try(key, lines.number(piece.begin), lines.text[piece.begin : piece.end], piece.held)
        return hits

    def _news(self, text: bytes) -> _News | None:
        """Returns the lines of a text without those that are known to say nothing new; None where few are the same."""
        keys = text.translate(None, DROPPED).split(b"\n")
        last = dict(zip(keys, range(len(keys)), strict=True))
        if 2 * len(last) > len(keys):
            return None
        lines = text.split(b"\n")
        times = {key: self._times.get(hash(key), 0) for key in last}
        places = {last[key] for key, count in times.items() if count != NEVER}
        left = {key: NEWS - count for key, count in times.items() if 0 <= count < NEWS}
        for place, key in enumerate(keys) if left else ():
            if left.get(key):
                places.add(place)
                left[key] -= 1
        chosen = sorted(places)
        if any(len(lines[place]) > PIECE for place in chosen):  # what is cut has keys of its own
            return None
        return _News(b"\n".join([lines[place] for place in chosen]), chosen, {hash(key) for key in left if not times[key]})

    def _try(self, key: int, line: int, data: bytes, held: Sequence[Match]) -> list[Hit]:
        hits = list(self._find(line, data.decode(errors="replace"), held))
        times = self._times.get(key, 0) + 1
        self._times[key] = NEVER if times >= DULL and not hits else times
        return hits

    def _find(self, line: int, text: str, held: Sequence[Match]) -> Iterator[Hit]:
        quoted = QUOTED.search(text)
        limit = quoted.start() if quoted else len(text)
        for place in sorted({place for anchor, _, _ in held for place in self._of_anchor[anchor]}):
            found = self._signs[place].pattern.search(text)
            if found is not None and found.start() <= limit:
                yield Hit(self._signs[place], line, text, found)


class _News(NamedTuple):
    """Some lines of a text, their places there, and the hashes of the keys that were not seen before."""

    text: bytes
    places: list[int]
    unknown: set[int]


class _Lines:
    """Tells in which line of the file a place of the text stands; asked from the first to the last.

    `places`: which lines of the block the text is made of; None where it is all of them.
    """

    def __init__(self, block: Block, text: bytes, places: Sequence[int] | None) -> None:
        self.text = text
        self._first, self._places = block.first_line, places
        self._at = self._before = 0
        # One line may be made of many states of a progress bar, each of which is a line of the text.
        self._ends = block.data.translate(None, NO_ENDS) if b"\r" in block.data else None

    def number(self, at: int) -> int:
        self._before += self.text.count(b"\n", self._at, at)
        self._at = at
        place = self._before if self._places is None else self._places[self._before]
        return self._first + (place if self._ends is None else self._ends.count(b"\n", 0, place))


def _pieces(text: bytes, found: Sequence[Match]) -> Iterator[Piece]:
    """Yields the lines in which anchors were found, in order; of one too long for patterns the parts around them."""
    begin, end, first = 0, -1, 0
    for place, (_, at, until) in enumerate(found):
        if at <= end:
            continue
        yield from _cut(begin, end, found[first:place])
        begin, end, first = text.rfind(b"\n", 0, at) + 1, text.find(b"\n", until), place
        end = len(text) if end < 0 else end
    yield from _cut(begin, end, found[first:])


def _cut(begin: int, end: int, held: Sequence[Match]) -> Iterable[Piece]:
    if end - begin <= PIECE:
        return (Piece(begin, end, held),) if held else ()
    parts: dict[int, list[Match]] = {}
    for match in held:
        part, offset = divmod(match[1] - begin, STEP)
        parts.setdefault(part, []).append(match)
        if part and offset < OVERLAP:
            parts.setdefault(part - 1, []).append(match)
    cuts = sorted(parts.items())
    return [Piece(begin + part * STEP, min(end, begin + part * STEP + PIECE), matches) for part, matches in cuts]
