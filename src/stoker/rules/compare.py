"""The little language of a rule's tests: does a value pass, fail, or is it unknown? See the room's docstring."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from stoker.records import Scalar, Test

Value = Scalar | tuple[Scalar, ...] | None
Situation = Mapping[str, Value]
COMPARISON = re.compile(r"(>=|<=|>|<)\s*(.+)")
NUMBER = re.compile(r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?")
VERSION = re.compile(r"v?(\d+(?:\.\d+)*)")
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
    return passes(test, value)


def _is_negation(test: Test) -> bool:
    return isinstance(test, str) and test.startswith("!") and test != "!absent"


def passes(test: Test, value: Value) -> bool | None:
    """Returns whether a value passes a test; of several values one is enough, but a negation is for all of them."""
    if isinstance(test, tuple):
        results = [passes(one, value) for one in test]
        return True if True in results else None if None in results else False
    if isinstance(test, str) and test.startswith("!"):
        inner = passes(test[1:], value)
        return None if inner is None else not inner
    if test == "set":
        return True
    if isinstance(value, tuple):
        results = [_passes_one(test, one) for one in value]
        return True if True in results else None if None in results else False
    return _passes_one(test, value)


def _passes_one(test: Scalar, value: Scalar | None) -> bool | None:
    if value is None:
        return None
    if isinstance(test, bool) or isinstance(value, bool):
        return str(test).lower() == str(value).lower()
    if isinstance(test, str) and COMPARISON.match(test):
        return all_true(_compare(part.strip(), value) for part in test.split(","))
    if isinstance(test, int | float):
        number = as_number(value)
        return number is not None and number == float(test)
    return fnmatchcase(str(value).lower(), test.lower())


def all_true(results: Iterable[bool | None]) -> bool | None:
    """Returns False where one is, else None where one is, else True."""
    found = list(results)
    return False if False in found else None if None in found else True


def _compare(part: str, value: Scalar) -> bool | None:
    found = COMPARISON.fullmatch(part)
    if found is None:
        return False
    sign, limit = found.groups()
    left, right = as_number(value), as_number(limit)
    if left is not None and right is not None and "." not in limit.replace(".", "", 1):
        order = (left > right) - (left < right)
    else:
        ours, theirs = as_version(str(value)), as_version(limit)
        if ours is None or theirs is None:
            return None  # a nightly, 'latest', a branch: nobody knows on which side it lies
        order = (ours > theirs) - (ours < theirs)
    return {">": order > 0, ">=": order >= 0, "<": order < 0, "<=": order <= 0}[sign]


def as_number(value: Scalar) -> float | None:
    """Returns a number that is one, or is written like one."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    return float(value) if NUMBER.fullmatch(value) else None


def as_version(text: str) -> tuple[int, ...] | None:
    """Returns (0, 5, 12) for '0.5.12', 'v0.5.12' and '0.5.12.post1'; None for 'latest' and 'nightly-dev-...'."""
    found = VERSION.match(text)
    if found is None:
        return None
    numbers = [int(number) for number in found[1].split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
