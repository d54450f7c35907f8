"""Times that another box told by its own clock, as this box's clock has them."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

# All fields of a status and of a watch that are seconds since the epoch; 0 is never, and None unknown.
TIMES = frozenset({"at", "since", "fired", "resolved", "until", "silenced_until", "returns_at", "ended", "waits_until"})
T = TypeVar("T", bound=msgspec.Struct)


def as_here(told: T, apart_s: float) -> T:
    """Returns a record with its times moved by how far this box's clock is ahead of the one that told them."""
    changes = {name: _moved(name, getattr(told, name), apart_s) for name in told.__struct_fields__}
    return msgspec.structs.replace(told, **changes)


def _moved(name: str, value: Any, apart_s: float) -> Any:
    if isinstance(value, msgspec.Struct):
        return as_here(value, apart_s)
    if isinstance(value, tuple):
        return tuple(_moved("", one, apart_s) for one in value)
    return value + apart_s if name in TIMES and value else value
