"""What is on the wire of a trunk: frames, each of a channel's number, its length, its kind and so many bytes."""

from __future__ import annotations

from enum import IntEnum
from struct import Struct

PROTOCOL = "stoker-trunk/1"  # as TLS agrees upon it (ALPN, RFC 7301)
HEAD = Struct(">IHB")  # channel, length in bytes, kind
FRAME_BYTES = 16 * 1024  # so much goes of one channel before others have their turn
# What may be under way to a channel that nobody reads; its other end grants as much again as was taken.
WINDOW_BYTES = 128 * 1024
CREDIT = Struct(">I")


class Kind(IntEnum):
    """What a frame says of its channel: END comes after the last bytes, CUT instead of them, or of an END that is in vain.

    ASK and HERE are of no channel: who is asked says that it is there.
    """

    DATA = 0
    OPEN = 1
    GRANT = 2
    END = 3
    CUT = 4
    ASK = 5
    HERE = 6


DATA = int(Kind.DATA)


class BrokenTrunk(ConnectionError):
    """The other end does not keep to the frames, or to what it was granted."""


def render(number: int, kind: Kind, data: bytes = b"") -> bytes:
    """Returns a frame."""
    return HEAD.pack(number, len(data), kind) + data
