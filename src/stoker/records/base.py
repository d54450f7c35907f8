"""What all records are made of, and how amounts of memory and lengths of time are said."""

from __future__ import annotations

import msgspec

GIB = 1024**3
MIB = 1024**2
MINUTE_S, EXACT_BELOW_S = 60, 10


def say_bytes(count: int) -> str:
    """Returns an amount of memory as people read it: '249 MiB', '70.2 GiB'."""
    return f"{count / GIB:.1f} GiB" if count >= GIB else f"{count / MIB:.0f} MiB"


def say_s(seconds: float) -> str:
    """Returns a length of time as people read it, exactly where it is short: '0.31 s', '42.7 s', '22 min 4 s'."""
    if seconds >= MINUTE_S:
        return f"{int(seconds // MINUTE_S)} min {int(seconds % MINUTE_S)} s"
    return f"{seconds:.2f} s" if seconds < EXACT_BELOW_S else f"{seconds:.1f} s"


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A value that never changes once it is made."""
