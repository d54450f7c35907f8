"""Decides those conditions of a shell script that its own words decide, such as `[[ "${SPEC:-1}" == 1 ]]`."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

NUMBERS = {"-eq": (0,), "-ne": (-1, 1), "-lt": (-1,), "-le": (-1, 0), "-gt": (1,), "-ge": (0, 1)}
MOST_DIGITS = 18
LONGEST_TEXT = 2_000
BRACKETS = {"[": "]", "[[": "]]"}


def is_condition(words: Sequence[str]) -> bool:
    """Tells whether these words ask something, where other commands do something."""
    return bool(words) and words[0] in ("[", "[[", "test", "true", "false", ":")


def decide(words: Sequence[str]) -> bool | None:
    """Returns the outcome of `[ ... ]`, `test`, `true` or `false`; None where it hangs on more than the words."""
    program, *rest = words or ("",)
    if program in ("true", ":", "false"):
        return program != "false"
    if program in BRACKETS and rest and rest[-1] == BRACKETS[program]:
        return _decide_test(rest[:-1])
    return _decide_test(rest) if program == "test" else None


def _decide_test(words: Sequence[str]) -> bool | None:
    if words and words[0] == "!":
        return opposite(_decide_test(words[1:])) if len(words) < 6 else None
    if len(words) == 1:
        return words[0] != ""
    if len(words) == 2 and words[0] in ("-n", "-z"):
        return (words[1] != "") == (words[0] == "-n")
    if len(words) != 3:
        return None
    left, sign, right = words
    if sign in ("=", "==", "!=") and len(left) < LONGEST_TEXT and len(right) < LONGEST_TEXT:
        return fnmatchcase(left, right) == (sign != "!=")
    if sign in NUMBERS and is_short_number(left) and is_short_number(right):
        return (int(left) > int(right)) - (int(left) < int(right)) in NUMBERS[sign]
    return None


def is_short_number(text: str) -> bool:
    """Tells whether a text is a whole number of a size that shells count with."""
    return text.isascii() and text.removeprefix("-").isdigit() and len(text) <= MOST_DIGITS


def opposite(known: bool | None) -> bool | None:
    """Returns the opposite of what is known."""
    return None if known is None else not known


def both(left: bool | None, right: bool | None) -> bool | None:
    """Returns whether both hold: false where one is false, unknown where one is unknown."""
    return False if left is False or right is False else None if None in (left, right) else True


def either(left: bool | None, right: bool | None) -> bool | None:
    """Returns whether one of them holds."""
    return opposite(both(opposite(left), opposite(right)))
