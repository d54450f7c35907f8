"""Makes prompts of exactly so many tokens, each unlike all others, from texts of our own; the same seed makes the same ones.

A prompt is a head of six words that nobody else's has, so that no cache can help, and then sentences, functions or turns in
an order drawn for it. Where the server's tokenizer cannot be asked, one body is fitted by trial requests, and heads change.
"""

from __future__ import annotations

import re
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
TOKENS_PER_WORD, LEAST_SLOPE = 1.5, 0.1
FILLERS = (" a", " I", ".", "e", " the", "\n")


class Fitted(NamedTuple):
    """A text, and how many tokens the messages with it are; `pieces` of the passage it took, and what fills the rest."""

    text: str
    tokens: int
    pieces: int
    filler: str


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


def make_head(random: Random) -> str:
    """Returns words that begin a prompt as no other begins: one of 10^13."""
    return " ".join(random.choice(_head_words()) for _ in range(HEAD_WORDS)).capitalize() + ".\n\n"


class Passage:
    """An endless text drawn from a content; `text(n)` are its first n words with what stands between them."""

    def __init__(self, content: str, random: Random, head: str = "") -> None:
        self._units = units_of(content)
        self._random = random
        self._pieces = PIECE.findall(head)
        self._head = head

    def text(self, count: int) -> str:
        """Returns the first words."""
        while len(self._pieces) < count:
            order = list(self._units)
            self._random.shuffle(order)
            self._pieces += [piece for unit in order for piece in PIECE.findall(f"\n\n{unit}")]
        return "".join(self._pieces[:count])


def fit(passage: Passage, target: int, guess: int, count_of: Callable[[str], int]) -> Fitted:
    """Returns the text of a passage whose messages are exactly `target` tokens, or the nearest below that was found.

    `count_of` tells the tokens of the messages with a text; it is asked some five times. `guess` is how many words may do.
    """
    low, low_tokens, high = 0, None, None
    pieces, slope, before = max(1, guess), TOKENS_PER_WORD, None
    for _ in range(MOST_LOOKS):
        tokens = count_of(passage.text(pieces))
        if tokens == target:
            return Fitted(passage.text(pieces), tokens, pieces, "")
        if before is not None and before[0] != pieces:
            slope = max(LEAST_SLOPE, (tokens - before[1]) / (pieces - before[0]))
        before = pieces, tokens
        low, low_tokens, high = (pieces, tokens, high) if tokens < target else (low, low_tokens, pieces)
        if high is not None and high - low <= 1:
            break
        pieces = max(low + 1, pieces + (round((target - tokens) / slope) or (1 if tokens < target else -1)))
        pieces = pieces if high is None else min(high - 1, pieces)
    known = count_of(passage.text(low)) if low_tokens is None else low_tokens
    return _fill(passage, low, known, target, count_of)


def _fill(passage: Passage, pieces: int, tokens: int, target: int, count_of: Callable[[str], int]) -> Fitted:
    """Fills the few tokens that no further word fits into."""
    text, missing = passage.text(pieces), target - tokens
    for filler in FILLERS if 0 < missing <= MOST_LOOKS else ():
        if count_of(text + filler * missing) == target:
            return Fitted(text + filler * missing, target, pieces, filler * missing)
    return Fitted(text, tokens, pieces, "")


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
