"""Reads what another program wrote: strictly, with the place of whatever is wrong, and the names of what is not known."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypeVar

import msgspec

from stoker.errors import WrongUse

INFINITE, NO_LIMIT = "Infinity", "inf"
Read = TypeVar("Read", bound=msgspec.Struct)
Amount = Annotated[float, msgspec.Meta(ge=0)]
Count = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[int, msgspec.Meta(ge=1)]


class Foreign(msgspec.Struct, frozen=True):
    """What another program wrote; fields that it has and we do not know are told by `unknown_fields`."""


def refusal(name: str, place: str, why: str, next_step: str = "") -> WrongUse:
    """Returns what to tell of a place in a file."""
    return WrongUse(f"{name} cannot be imported: {place}", why=why, next_step=next_step)


def read_json(text: str, name: str) -> Any:
    """Returns what JSON says; raises WrongUse with the line where it is none, or has a number that is none."""
    try:
        return json.loads(text, parse_constant=_no_number)
    except ValueError as problem:
        raise refusal(name, "it is not JSON", str(problem)) from problem


def _no_number(word: str) -> str:
    if word == INFINITE:  # SGLang's rate of requests that come all at once
        return NO_LIMIT
    raise ValueError(f"{word} is no number that JSON knows, and none that can be compared")


def read_as(raw: object, kind: type[Read], name: str, place: str = "$") -> Read:
    """Returns what was read as a record; raises WrongUse with the place of what is missing or of another kind."""
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as problem:
        what, _, where = str(problem).partition(" - at ")
        raise refusal(name, f"{place}{where.strip('`').removeprefix('$')}", what) from problem


def unknown_fields(raw: Mapping[str, object], known: Iterable[str]) -> list[str]:
    """Returns the names of what is there and not known."""
    return sorted(set(raw) - set(known))


def not_kept(names: Iterable[str]) -> str:
    """Returns what to note of fields that are not kept, or nothing."""
    left = ", ".join(sorted(set(names)))
    return f"not kept: {left}" if left else ""
