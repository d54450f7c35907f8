"""Random choices for the dialogues, with a fixed part kept for the held-out prompts."""

from __future__ import annotations

import hashlib
import random
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

HERE = Path(__file__).parent
HELD_OUT_SHARE = 10
INVENTED_SHARE = 0.25
STRANGE_SHARE = 0.55
CLOSED = ("weekday", "month", "action")
CAPITALISED = ("language", "cuisine", "song", "city", "person")
ENDINGS = {"file": (".txt", ".py", ".md", ".json", ".csv", ".log"), "folder": ("", "/", "s")}
ONSETS = [
    "b",
    "c",
    "d",
    "f",
    "g",
    "h",
    "j",
    "k",
    "l",
    "m",
    "n",
    "p",
    "r",
    "s",
    "t",
    "v",
    "w",
    "z",
    "br",
    "ch",
    "cl",
    "cr",
    "dr",
    "fl",
    "gr",
    "kl",
    "pl",
    "pr",
    "sh",
    "sk",
    "sl",
    "st",
    "th",
    "tr",
    "qu",
]
VOWELS = ["a", "e", "i", "o", "u", "a", "e", "i", "o", "ai", "ea", "ie", "oo", "ou"]
CODAS = ["", "", "", "l", "n", "r", "s", "t", "k", "m", "nd", "rk", "st", "x"]
CHOICE = re.compile(r"\[([^\[\]]*)\]")
PLACEHOLDER = re.compile(r"\{(\w+)\}")

T = TypeVar("T")


@cache
def words(kind: str) -> tuple[str, ...]:
    """The list of one kind, such as `city`."""
    lists = tomllib.loads((HERE / "words.toml").read_text(encoding="utf-8"))
    return tuple(word.strip() for word in lists[kind].split("|"))


@cache
def vocabulary(held_out: bool) -> tuple[str, ...]:
    """Common words of the training text; with them the model learns to copy what it never saw as a value."""
    return tuple(word for word in (HERE / "vocabulary.txt").read_text().split() if is_held_out(word) == held_out)


def is_held_out(word: str) -> bool:
    """Whether a value is kept for the held-out prompts."""
    return hashlib.md5(word.lower().encode(), usedforsecurity=False).digest()[0] % HELD_OUT_SHARE == 0


@cache
def sentences(module: str, name: str) -> tuple[str, ...]:
    """The sentences of one name that a module uses."""
    stored = tomllib.loads((HERE / "sentences.toml").read_text(encoding="utf-8"))
    return tuple(stored[module][name])


@cache
def split_words(kind: str, held_out: bool) -> tuple[str, ...]:
    """The part of a list that one side may use; a short list with nothing held out is shared."""
    return tuple(word for word in words(kind) if is_held_out(word) == held_out) or words(kind)


@dataclass(frozen=True)
class Draw:
    """A seeded source of choices for one side of the split."""

    rng: random.Random
    held_out: bool = False

    def chance(self, probability: float) -> bool:
        """True with the given probability."""
        return self.rng.random() < probability

    def one(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[int(self.rng.random() * len(options))]

    def integer(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return low + int(self.rng.random() * (high - low + 1))

    def word(self, kind: str) -> str:
        """A word of a list, from this side of the split."""
        return self.one(split_words(kind, self.held_out))

    def strange(self, kind: str) -> str:
        """One or two words that have nothing to do with the kind."""
        count = 2 if kind not in ENDINGS and self.chance(0.25) else 1
        picked = [
            self.invented() if self.chance(INVENTED_SHARE) else self.one(vocabulary(self.held_out)) for _ in range(count)
        ]
        text = " ".join(word.capitalize() if kind in CAPITALISED else word for word in picked)
        return text + self.one(ENDINGS.get(kind, ("",)))

    def value(self, kind: str) -> str:
        """A word of a list or, where that makes no nonsense of dates, any other."""
        return self.strange(kind) if kind not in CLOSED and self.chance(STRANGE_SHARE) else self.word(kind)

    def invented(self) -> str:
        """A pronounceable word that no dictionary holds, from this side of the split."""
        while True:
            syllables = self.integer(2, 3)
            word = "".join(self.one(ONSETS) + self.one(VOWELS) + self.one(CODAS) for _ in range(syllables))
            if is_held_out(word) == self.held_out:
                return word

    def name(self, kind: str) -> str:
        """A capitalised name from a list, or an invented one."""
        return self.value(kind)

    def phrase(self, text: str, values: Mapping[str, object] | None = None) -> str:
        """The text with each `[a|b]` chosen and each `{name}` filled in."""
        while match := CHOICE.search(text):
            text = text[: match.start()] + self.one(match[1].split("|")) + text[match.end() :]
        text = PLACEHOLDER.sub(lambda m: str((values or {})[m[1]]), text)
        return re.sub(r" +", " ", text).strip() if "  " in text else text.strip()
