"""Finds signs in blocks of a log. A log repeats itself: a line is looked at once, and after that as often as it is news.

Lines that differ in numbers alone have one key. Of a new key's lines the words are looked at, each word once; only lines
with a word that holds an anchor of some sign are tried against that sign's pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from stoker.diagnose.anchors import find_anchors, one_pattern
from stoker.diagnose.blocks import Block
from stoker.supervise.logs import ESCAPES

LINES = bytes.maketrans(b"\r", b"\n")  # each state of a progress bar is a line of its own
# Hexadecimal digits tell request from request and address from address; two sentences never differ in them alone.
DROPPED = b"0123456789abcdefABCDEF"
SMALL = bytes(code if chr(code).islower() else ord(chr(code).lower()) if 65 <= code <= 90 else 32 for code in range(256))
MOST_KEYS, MOST_KEY_BYTES = 50_000, 8 * 2**20
MOST_WORDS = 100_000
MOST_NEW_WORDS = 30_000  # of a block: where more are new, the next one's will be, too
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
        self._anchor = one_pattern(self._by_anchor)
        self._dull: set[bytes] = set()
        self._dull_bytes = 0
        self._times: dict[bytes, int] = {}
        self._words: dict[bytes, bool] = {}  # whether a word holds an anchor

    def scan(self, block: Block) -> list[Hit]:
        """Returns the hits in one block."""
        keys = block.data.translate(LINES, DROPPED).split(b"\n")
        if self._dull.issuperset(keys):
            return []
        whole = block.data.translate(LINES).split(b"\n")
        lines, origins = _in_pieces(whole)
        if lines is not whole:
            keys = [line.translate(None, DROPPED) for line in lines]
        last = dict(zip(keys, range(len(keys)), strict=True))
        fresh = last.keys() - self._dull
        places = self._places(keys, fresh, last)
        telling = self._telling(b"\n".join([lines[place] for place in places]))
        told = [place for place in places if telling and not telling.isdisjoint(_words(lines[place]))]
        self._forget(fresh - {keys[place] for place in told})
        numbers = _numbers(block, whole, [origins[place] for place in told])
        return [hit for place, line in zip(told, numbers, strict=True) for hit in self._try(line, lines[place], keys[place])]

    def _places(self, keys: list[bytes], fresh: set[bytes], last: dict[bytes, int]) -> list[int]:
        """The last line of each key in the block, and of one that is still news as many of the first as are missing."""
        places = {last[key] for key in fresh}
        left = {key: NEWS - times for key in fresh if (times := self._times.get(key, 0)) < NEWS}
        for place, key in enumerate(keys) if left else ():
            if (more := left.get(key)) is None:
                continue
            places.add(place)
            if more > 1:
                left[key] = more - 1
            else:
                del left[key]
        return sorted(places)

    def _telling(self, text: bytes) -> set[bytes]:
        words = _words(text)
        new = words - self._words.keys()
        telling = self._with_anchor(b" ".join(new))
        known = telling | {word for word in words - new if self._words[word]}
        if len(new) <= MOST_NEW_WORDS:
            self._keep_words(new, telling)
        return known

    def _keep_words(self, new: set[bytes], telling: set[bytes]) -> None:
        if max(map(len, new), default=0) > LONGEST_WORD:  # what is none takes memory, and seldom comes twice
            new = {word for word in new if len(word) <= LONGEST_WORD}
        if len(self._words) > MOST_WORDS:
            self._words.clear()
        self._words |= dict.fromkeys(new, False)
        self._words |= dict.fromkeys(telling & new, True)

    def _with_anchor(self, text: bytes) -> set[bytes]:
        """Returns those of the words in a text that hold an anchor."""
        found, end = set(), 0
        while match := self._anchor.search(text, end):
            begin, end = text.rfind(b" ", 0, match.start()) + 1, text.find(b" ", match.end())
            end = len(text) if end < 0 else end
            found.add(text[begin:end])
        return found

    def _forget(self, dull: set[bytes]) -> None:
        dull = dull - self._dull
        self._dull_bytes += sum(map(len, dull))
        if len(self._dull) > MOST_KEYS or self._dull_bytes > MOST_KEY_BYTES:
            self._dull.clear()
            self._dull_bytes = 0
        self._dull |= dull

    def _try(self, line: int, data: bytes, key: bytes) -> list[Hit]:
        hits = list(self._find(line, ESCAPES.sub(b"", data).decode(errors="replace")))  # as a terminal shows it
        if len(self._times) > MOST_KEYS:
            self._times.clear()
        self._times[key] = times = self._times.get(key, 0) + 1
        if times >= DULL and not hits:
            self._forget({key})
        return hits

    def _find(self, line: int, text: str) -> Iterator[Hit]:
        small = text.lower()
        likely = dict.fromkeys(sign for anchor, signs in self._by_anchor.items() if anchor in small for sign in signs)
        quoted = QUOTED.search(text) if likely else None
        limit = quoted.start() if quoted else len(text)
        for sign in likely:
            found = sign.pattern.search(text)
            if found is not None and found.start() <= limit:
                yield Hit(sign, line, text, found)


def _numbers(block: Block, lines: list[bytes], told: Sequence[int]) -> list[int]:
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


def _in_pieces(lines: list[bytes]) -> tuple[list[bytes], Sequence[int]]:
    """Returns lines, long ones in pieces that patterns can be tried on whatever they are, and which line each is of."""
    if max(map(len, lines)) <= PIECE:
        return lines, range(len(lines))
    cut = [(line[begin : begin + PIECE], place) for place, line in enumerate(lines)
           for begin in range(0, max(1, len(line) - OVERLAP), PIECE - OVERLAP)]  # fmt: skip
    return [piece for piece, _ in cut], [place for _, place in cut]
