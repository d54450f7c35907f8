"""What all records are made of, and how amounts of memory are said."""

from __future__ import annotations

import msgspec

GIB = 1024**3
MIB = 1024**2


def say_bytes(count: int) -> str:
    """Returns an amount of memory as people read it: '249 MiB', '70.2 GiB'."""
    return f"{count / GIB:.1f} GiB" if count >= GIB else f"{count / MIB:.0f} MiB"


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A value that never changes once it is made."""
