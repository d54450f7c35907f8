"""The little language of a rule's tests: does a value pass, fail, or is it unknown? See the room's docstring."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from stoker.records import Scalar, Test

Value = Scalar | tuple[Scalar, ...] | None
Situation = Mapping[str, Value]
COMPARISON = re.compile(r"(>=|<=|>|<)\s*(.+)")
# As vLLM writes whole numbers: `64k` is 64,000 and `64K` 65,536; a fraction goes with the small letters alone.
COUNT = re.compile(r"(\d+(?:\.\d+)?(?=[kmgt])|\d+(?=[KMGT]))([kKmMgGtT])")
LETTERS = "kmgt"
VERSION = re.compile(r"[vb]?(\d+(?:\.\d+)*)")
MOST_DIGITS = 18  # of one number of a version; beyond some thousand, Python refuses to read them
# Facts that are versions even where they look like a number: 0.20 comes after 0.9.
VERSIONS = frozenset({"version", "driver", "cuda"})
GIVEN = ("--", "$", "lost$", "docker:", "unit:", "grant")


def is_given_name(name: str) -> bool:
    """Tells whether the launch itself says this, so that not finding it means that it is absent, not unknown."""
    return name.startswith(GIVEN)


def all_hold(tests: Mapping[str, Test], situation: Situation) -> bool | None:
    """Returns whether all tests hold; None where none fails and one cannot be decided."""
    results = [holds(name, test, situation) for name, test in tests.items()]
    if False in results:
        return False
    return None if None in results else True


def undecided(tests: Mapping[str, Test], situation: Situation) -> list[str]:
    """Returns the names on which the answer hangs."""
    return [name for name, test in tests.items() if holds(name, test, situation) is None]


def holds(name: str, test: Test, situation: Situation) -> bool | None:
    """Returns whether one test holds for one name of the situation; None where the value is unknown."""
    value = situation.get(name)
    if is_given_name(name):
        if test == "absent":
            return name not in situation
        if name not in situation:
            return _is_negation(test)
    elif value is None:
        return None
    return passes(test, value, is_version=name in VERSIONS)


def _is_negation(test: Test) -> bool:
    return isinstance(test, str) and test.startswith("!") and test != "!absent"


def passes(test: Test, value: Value, is_version: bool = False) -> bool | None:
    """Returns whether a value passes a test; of several values one is enough, but a negation is for all of them."""
    if isinstance(test, tuple):
        results = [passes(one, value, is_version) for one in test]
        return True if True in results else None if None in results else False
    if isinstance(test, str) and test.startswith("!"):
        inner = passes(test[1:], value, is_version)
        return None if inner is None else not inner
    if test == "set":
        return True
    if isinstance(value, tuple):
        results = [_passes_one(test, one, is_version) for one in value]
        return True if True in results else None if None in results else False
    return _passes_one(test, value, is_version)


def _passes_one(test: Scalar, value: Scalar | None, is_version: bool) -> bool | None:
    if value is None:
        return None
    if isinstance(test, bool) or isinstance(value, bool):
        return str(test).lower() == str(value).lower()
    if isinstance(test, str) and COMPARISON.match(test):
        return all_true(_compare(part.strip(), value, is_version) for part in test.split(","))
    if isinstance(test, int | float):
        number = as_number(value)
        return number is not None and number == as_number(test)
    return fnmatchcase(str(value).lower(), test.lower())


def all_true(results: Iterable[bool | None]) -> bool | None:
    """Returns False where one is, else None where one is, else True."""
    found = list(results)
    return False if False in found else None if None in found else True


def _compare(part: str, value: Scalar, is_version: bool) -> bool | None:
    found = COMPARISON.fullmatch(part)
    if found is None:
        return False
    sign, limit = found.groups()
    left, right = as_number(value), as_number(limit)
    if left is not None and right is not None and not is_version:
        order = (left > right) - (left < right)
    else:
        ours, theirs = as_version(str(value)), as_version(limit)
        if ours is None or theirs is None:
            return None  # a nightly, 'latest', a branch: nobody knows on which side it lies
        order = (ours > theirs) - (ours < theirs)
    return {">": order > 0, ">=": order >= 0, "<": order < 0, "<=": order <= 0}[sign]


def as_number(value: Scalar) -> float | None:
    """Returns a number that is one, or that the engines' parsers read as one: `.88`, `+0.9`, `1_000`, `1e-1`, `64k`."""
    if isinstance(value, bool):
        return None
    try:
        number = _counted(value.strip()) if isinstance(value, str) else float(value)
    except (ValueError, OverflowError):  # no number, or one with more digits than a float has
        return None
    return number if math.isfinite(number) else None  # Python reads `nan` and `inf`; no engine runs with them


def _counted(text: str) -> float:
    found = COUNT.fullmatch(text)
    if found is None:
        return float(text)
    base = 1000.0 if found[2].islower() else 1024.0
    return float(found[1]) * base ** (LETTERS.index(found[2].lower()) + 1)


def as_version(text: str) -> tuple[int, ...] | None:
    """Returns (0, 5, 12) for '0.5.12', 'v0.5.12' and '0.5.12.post1'; None for 'latest' and 'nightly-dev-...'."""
    found = VERSION.match(text)
    if found is None or any(len(number) > MOST_DIGITS for number in found[1].split(".")):
        return None
    numbers = [int(number) for number in found[1].split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
