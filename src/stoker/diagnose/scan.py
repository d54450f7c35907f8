"""Finds signs in blocks of a log. A log repeats itself: a line is looked at once, and after that as often as it is news.

Lines that differ in numbers alone have one key. Of a new key's lines the words are looked at, each word once; only lines
with a word that holds an anchor of some sign are tried against that sign's pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from stoker.diagnose.anchors import find_anchors
from stoker.diagnose.blocks import Block
from stoker.supervise.logs import ESCAPES

LINES = bytes.maketrans(b"\r", b"\n")  # each state of a progress bar is a line of its own
# Hexadecimal digits tell request from request and address from address; two sentences never differ in them alone.
DROPPED = b"0123456789abcdefABCDEF"
SMALL = bytes(code if chr(code).islower() else ord(chr(code).lower()) if 65 <= code <= 90 else 32 for code in range(256))
MOST_KEYS, MOST_KEY_BYTES = 50_000, 8 * 2**20
LONGEST_KEY = 64 * 1024
MOST_WORDS = 200_000
LONGEST_WORD = 64
NEWS = 20  # so often lines with one key are tried; from then on they are taken to say what the last one said
DULL = 4  # so often where they said nothing
PIECE, OVERLAP = 8192, 1024
# What a client asked for is no sign of anything, whatever it says.
QUOTED = re.compile(r"""Received request|\bprompt: ['"]|["'](?:content|prompt|text|input)["']: """)


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


@cache
def make_sign(kind: str, name: str, pattern: str) -> Sign:
    """Returns a sign; its pattern needs a run of letters that each match holds."""
    anchors = find_anchors(pattern)
    if not anchors:
        raise ValueError(f"no match of {pattern!r} is sure to hold four letters in a row")
    return Sign(kind, name, re.compile(pattern), anchors)


class Scanner:
    """Finds the hits of signs in one log's blocks, in the order of its lines."""

    def __init__(self, signs: Iterable[Sign]) -> None:
        self._by_anchor: dict[str, list[Sign]] = {}
        for sign in signs:
            for anchor in sign.anchors:
                self._by_anchor.setdefault(anchor, []).append(sign)
        self._anchor = re.compile("|".join(sorted(self._by_anchor)).encode())
        self._dull: set[bytes] = set()
        self._dull_bytes = 0
        self._times: dict[bytes, int] = {}
        self._words: dict[bytes, bool] = {}  # whether a word holds an anchor

    def scan(self, block: Block) -> list[Hit]:
        """Returns the hits in one block."""
        keys = block.data.translate(LINES, DROPPED).split(b"\n")
        last = dict(zip(keys, range(len(keys)), strict=True))
        fresh = last.keys() - self._dull
        if not fresh:
            return []
        lines = block.data.translate(LINES).split(b"\n")
        places = self._places(keys, fresh, last)
        telling = self._telling(b"\n".join([lines[place] for place in places]))
        told = [place for place in places if telling and not telling.isdisjoint(_words(lines[place]))]
        self._forget(fresh - {keys[place] for place in told})
        return self._try(block, keys, lines, told)

    def _places(self, keys: list[bytes], fresh: set[bytes], last: dict[bytes, int]) -> list[int]:
        """Every line that may be news; of those that are none any more the last of the block."""
        news = {key for key in fresh if self._times.get(key, 0) < NEWS}
        old = [last[key] for key in fresh - news]
        return sorted([*old, *(place for place, key in enumerate(keys) if key in news)]) if news else sorted(old)

    def _telling(self, text: bytes) -> set[bytes]:
        words = _words(text)
        if len(self._words) > MOST_WORDS:
            self._words.clear()
        for word in words - self._words.keys():
            telling = self._anchor.search(word) is not None
            if len(word) <= LONGEST_WORD:
                self._words[word] = telling
            elif telling:
                return words
        return {word for word in words if self._words.get(word)}

    def _forget(self, dull: set[bytes]) -> None:
        dull = {key for key in dull if len(key) <= LONGEST_KEY} - self._dull
        self._dull_bytes += sum(map(len, dull))
        if len(self._dull) > MOST_KEYS or self._dull_bytes > MOST_KEY_BYTES:
            self._dull.clear()
            self._dull_bytes = 0
        self._dull |= dull

    def _try(self, block: Block, keys: list[bytes], lines: list[bytes], told: list[int]) -> list[Hit]:
        if not told:
            return []
        hits = []
        for place, line in zip(told, _numbers(block, lines, told), strict=True):
            found = [hit for text in _pieces(lines[place]) for hit in self._find(line, text)]
            hits += found
            self._count(keys[place], bool(found))
        return hits

    def _count(self, key: bytes, is_hit: bool) -> None:
        if len(key) > LONGEST_KEY:
            return
        if len(self._times) > MOST_KEYS:
            self._times.clear()
        self._times[key] = times = self._times.get(key, 0) + 1
        if times >= DULL and not is_hit:
            self._forget({key})

    def _find(self, line: int, text: str) -> Iterator[Hit]:
        small = text.lower()
        likely = dict.fromkeys(sign for anchor, signs in self._by_anchor.items() if anchor in small for sign in signs)
        quoted = QUOTED.search(text) if likely else None
        limit = quoted.start() if quoted else len(text)
        for sign in likely:
            found = sign.pattern.search(text)
            if found is not None and found.start() <= limit:
                yield Hit(sign, line, text, found)


def _numbers(block: Block, lines: list[bytes], told: list[int]) -> list[int]:
    """Returns the line of the file in which each of these lines stands: one may be made of many states of a progress bar."""
    if b"\r" not in block.data:
        return [block.first_line + place for place in told]
    ends = list(accumulate(len(line) + 1 for line in lines))
    line, reached, numbers = block.first_line, 0, []
    for place in told:
        begin = ends[place] - len(lines[place]) - 1
        line, reached = line + block.data.count(b"\n", reached, begin), begin
        numbers.append(line)
    return numbers


def _words(text: bytes) -> set[bytes]:
    return set(text.translate(SMALL).split())


def _pieces(line: bytes) -> Iterator[str]:
    """Yields a line as a terminal shows it, in pieces that a pattern can be tried on whatever it is."""
    for begin in range(0, max(1, len(line)), PIECE - OVERLAP):
        yield ESCAPES.sub(b"", line[begin : begin + PIECE]).decode(errors="replace")
        if begin + PIECE >= len(line):
            break
