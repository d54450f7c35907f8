"""Join codes: what a person carries from one box to another, once, within minutes."""

from __future__ import annotations

import base64
import hmac
import secrets
import time
from collections.abc import Callable
from hashlib import sha256
from typing import NamedTuple

from stoker.errors import Refused, WrongUse

GOOD_S = 600.0
MOST_WRONG = 5
# 96 bits of the certificate's digest tell the box from all others, so the code itself is never said to an impostor.
PIN_BYTES, SECRET_BYTES, GROUP = 12, 8, 4
AGAIN = "`stoker boxes code` on that box makes a new one"


class Code(NamedTuple):
    """What a code says: how the box's certificate's digest begins, and the secret, both in hex."""

    pin: str
    secret: str


def render_code(pin: str, secret: str) -> str:
    """Returns a code as a person copies it."""
    letters = base64.b32encode(bytes.fromhex(pin)[:PIN_BYTES] + bytes.fromhex(secret)).decode()
    return "-".join(letters[at : at + GROUP] for at in range(0, len(letters), GROUP))


def read_code(text: str) -> Code:
    """Reads a code as a person copied it; raises WrongUse where it is none."""
    letters = "".join(text.split()).replace("-", "").upper()
    try:
        said = base64.b32decode(letters)
    except ValueError:
        said = b""
    if len(said) != PIN_BYTES + SECRET_BYTES:
        raise WrongUse("this is no join code", why="a code is eight groups of four letters and digits", next_step=AGAIN)
    return Code(said[:PIN_BYTES].hex(), said[PIN_BYTES:].hex())


class _Live(NamedTuple):
    digest: bytes
    until: float
    may_act: bool


class Codes:
    """The one code that is good now. `clock` is monotonic, so a clock that is set anew makes none good again."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._live: _Live | None = None
        self._used: bytes | None = None
        self._wrong = 0

    def make(self, *, may_act: bool) -> str:
        """Returns the secret of a new code; one that was made before is good no more."""
        secret = secrets.token_hex(SECRET_BYTES)
        self._live = _Live(_digest(secret), self._clock() + GOOD_S, may_act)
        self._wrong = 0
        return secret

    def take(self, secret: str) -> bool:
        """Uses the code up, and returns whether who joins may act; raises Refused for one that is not good."""
        digest, live = _digest(secret), self._live
        if self._used is not None and hmac.compare_digest(digest, self._used):
            raise Refused("this join code was used already", why="a code joins one door, once", next_step=AGAIN)
        if live is None:
            raise Refused(
                "there is no join code here", why="none was made, or it was used or tried too often", next_step=AGAIN
            )
        if live.until <= self._clock():
            self._live = None
            raise Refused("the join code has expired", why=f"it is good for {GOOD_S / 60:g} minutes", next_step=AGAIN)
        if not hmac.compare_digest(digest, live.digest):
            self._wrong += 1
            if self._wrong >= MOST_WRONG:
                self._live = None
            raise Refused("the join code is wrong", why=f"{MOST_WRONG} wrong ones end the right one too", next_step=AGAIN)
        self._live, self._used = None, digest
        return live.may_act


def _digest(secret: str) -> bytes:
    return sha256(secret.encode()).digest()
