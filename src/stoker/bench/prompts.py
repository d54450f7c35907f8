"""Makes prompts of exactly so many tokens, each unlike all others, from texts of our own; the same seed makes the same ones.

A prompt is a head of six words that nobody else's has, so that no cache can help, and then sentences, functions or turns in
an order drawn for it. Where the server's tokenizer cannot be asked, one body is fitted by trial requests, and heads change.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

from stoker.errors import Refused, WrongUse

CONTENTS = ("code", "prose", "chat")
TEXTS = Path(__file__).with_name("texts")
SEPARATOR = "\n---\n"
PIECE = re.compile(r"\s*\S+")
HEAD_WORDS = 6
MOST_LOOKS = 12
FAR_OFF, LEAST_SLOPE = 2.0, 0.1
BYTES_PER_TOKEN = 4  # of English text with the vocabularies in use; only where nothing else tells
FILLERS = (" a", ".", " I", "e", " of", ",")


class Fitted(NamedTuple):
    """A text, and how many tokens the messages with it are; `pieces` of the passage it took, and what fills the rest.

    `estimate` is what the passage took itself to be.
    """

    text: str
    tokens: int
    pieces: int
    filler: str
    estimate: float


@cache
def units_of(content: str) -> tuple[str, ...]:
    """Returns the parts of a content: one of ours, or the paragraphs of a file. Raises WrongUse."""
    if content in CONTENTS:
        text = (TEXTS / f"{content}.txt").read_text(encoding="utf-8")
        return tuple(unit.strip("\n") for unit in text.split(SEPARATOR))
    try:
        text = Path(content).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise WrongUse(
            f"{content} cannot be read", why=str(problem), next_step=f"name a text file, or one of: {', '.join(CONTENTS)}"
        ) from problem
    units = tuple(unit for unit in re.split(r"\n\s*\n", text) if unit.strip())
    if not units:
        raise WrongUse(f"{content} holds no text", next_step="name a file with some paragraphs")
    return units


@cache
def _head_words() -> list[str]:
    """Returns words of four letters that most tokenizers know as one token, so that all heads are equally long."""
    return (TEXTS / "heads.txt").read_text(encoding="utf-8").split()


@cache
def _pieces_of(content: str) -> tuple[tuple[str, ...], ...]:
    """Returns the words of each part, each with what stands before it."""
    return tuple(tuple(PIECE.findall(f"\n\n{unit}")) for unit in units_of(content))


def make_head(random: Random) -> str:
    """Returns words that begin a prompt as no other begins: one of 10^13."""
    return " ".join(random.choice(_head_words()) for _ in range(HEAD_WORDS)).capitalize() + ".\n\n"


class Passage:
    """An endless text drawn from a content; `text(n)` are its first n words with what stands between them.

    `costs` are the tokens of each part of the content, so that a length can be guessed well before it is looked at.
    """

    def __init__(self, content: str, random: Random, head: str = "", costs: Sequence[float] = ()) -> None:
        units = _pieces_of(content)
        self._units = units
        self._costs = costs or [len("".join(unit)) / BYTES_PER_TOKEN for unit in units]
        self._random = random
        self._order: list[int] = []
        self._pieces = PIECE.findall(head)
        self._sums = [float(number + 1) for number in range(len(self._pieces))]

    def _draw(self) -> None:
        """Appends the next part; when all have been taken, all are taken again in an order drawn anew."""
        if not self._order:
            self._order = list(range(len(self._units)))
            self._random.shuffle(self._order)
        number = self._order.pop()
        unit, begin = self._units[number], self._sums[-1] if self._sums else 0.0
        each = self._costs[number] / len(unit)
        self._pieces += unit
        self._sums += [begin + each * place for place in range(1, len(unit) + 1)]

    def text(self, count: int) -> str:
        """Returns the first words."""
        while len(self._pieces) < count:
            self._draw()
        return "".join(self._pieces[:count])

    def estimate(self, count: int) -> float:
        """Returns about how many tokens the first words are."""
        return self._sums[count - 1] if count else 0.0

    def place(self, estimate: float) -> int:
        """Returns how many words are about so many tokens."""
        while not self._sums or self._sums[-1] < estimate:
            self._draw()
        return max(1, bisect_left(self._sums, estimate) + 1)


def fit(passage: Passage, target: int, start: float, count_of: Callable[[str], int]) -> Fitted:
    """Returns the text of a passage whose messages are exactly `target` tokens, or the nearest below that was found.

    `count_of` tells the tokens of the messages with a text; it is asked some three times. `start` is a first estimate.
    """
    low, low_tokens, high = 0, None, None
    pieces, slope, before = passage.place(start), 1.0, None
    for _ in range(MOST_LOOKS):
        tokens, estimate = count_of(passage.text(pieces)), passage.estimate(pieces)
        if tokens == target:
            return Fitted(passage.text(pieces), tokens, pieces, "", estimate)
        slope = _slope(slope, before, (estimate, tokens))
        before = estimate, tokens
        low, low_tokens, high = (pieces, tokens, high) if tokens < target else (low, low_tokens, pieces)
        if high is not None and high - low <= 1:
            break
        pieces = max(low + 1, passage.place(estimate + (target - tokens) / slope))
        pieces = pieces if high is None else min(high - 1, pieces)
    known = count_of(passage.text(low)) if low_tokens is None else low_tokens
    return _fill(passage, low, known, target, count_of)


def _slope(slope: float, before: tuple[float, int] | None, now: tuple[float, int]) -> float:
    """Returns how many tokens one token of an estimate is: by the last two looks, or by the first where it was far off."""
    if before is None:
        share = now[1] / max(now[0], 1.0)
        return share if not 1 / FAR_OFF < share < FAR_OFF else slope
    return max(LEAST_SLOPE, (now[1] - before[1]) / (now[0] - before[0])) if now[0] != before[0] else slope


def _fill(passage: Passage, pieces: int, tokens: int, target: int, count_of: Callable[[str], int]) -> Fitted:
    """Fills the few tokens that no further word fits into."""
    text, filler = passage.text(pieces), ""
    if target - tokens > 1:
        each = max(1, count_of(text + FILLERS[0]) - tokens)
        much = FILLERS[0] * ((target - tokens) // each)
        filler, tokens = (much, told) if (told := count_of(text + much)) <= target else (filler, tokens)
    for _ in range(MOST_LOOKS if tokens < target else 0):
        more = next(((one, told) for one in FILLERS if tokens < (told := count_of(text + filler + one)) <= target), None)
        if more is None:
            break
        filler, tokens = filler + more[0], more[1]
        if tokens == target:
            break
    return Fitted(text + filler, tokens, pieces, filler, passage.estimate(pieces))


def refuse_impossible(lengths: Sequence[tuple[int, int, int]], context_tokens: int | None, least_tokens: int) -> None:
    """Raises Refused where a cell (depth, prompt, new tokens) cannot be: too long for the context, or too short."""
    for depth, prompt, new in lengths:
        if context_tokens is not None and depth + prompt + new > context_tokens:
            raise Refused(
                f"a past of {depth}, a prompt of {prompt} and {new} new tokens do not fit into its context",
                why=f"together they are {depth + prompt + new} tokens, and its context has {context_tokens}",
                next_step="ask for less, or start it with a longer context",
            )
        if prompt < least_tokens or 0 < depth < least_tokens:
            raise Refused(
                f"a prompt of {prompt} tokens after a past of {depth} is too short",
                why=f"its template and the words that make a prompt unlike all others take {least_tokens} tokens",
                next_step=f"ask for prompts of {least_tokens} tokens or more",
            )
