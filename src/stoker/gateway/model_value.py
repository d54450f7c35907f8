"""Puts the real model's name where a request's body says an alias; every other byte stays as it came. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

import msgspec

from stoker.errors import WrongUse

MOST_MEMBERS = 10_000  # of that name, at whatever depth: a million of them would keep all other clients waiting for seconds
BACKSLASH = ord("\\")
_TEXT = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_VALUE = rb"[ \t\n\r]*:[ \t\n\r]*(?P<value>" + _TEXT + rb")"
# A key may spell any of its letters as an escape. That takes ten times as long, so it is done only where one of theirs is.
_ESCAPE = b"\\u006"
_SPELLED = rb"".join(rb"(?:%c|\\u00(?i:%02x))" % (letter, letter) for letter in b"model")
_MEMBER = re.compile(rb'"model"' + _VALUE, re.DOTALL)
_SPELLED_MEMBER = re.compile(rb'"' + _SPELLED + rb'"' + _VALUE, re.DOTALL)


def replace_model(body: bytes, model: str) -> bytes:
    """Returns a JSON object with the value of its own `model` replaced, and of each, where it says it more than once.

    The body must be one that msgspec reads as an object with a text `model`: of two it takes the last, others the first.
    Raises WrongUse where there are too many members of that name to look at.
    """
    # What is found is a member and nothing else: within a text a quote has a backslash before it, and after a text that is
    # no key comes no colon. But a key may end like this one.
    found = (_SPELLED_MEMBER if _ESCAPE in body else _MEMBER).finditer(body)
    members = [one for one in islice(found, MOST_MEMBERS) if body[one.start() - 1] != BACKSLASH]
    if next(found, None) is not None:
        raise WrongUse(
            f"the body has more than {MOST_MEMBERS} members called `model`", next_step="ask by the model's own name"
        )
    if len(members) > 1:
        members = list(_own(body, members))
    pieces, kept_to = [], 0
    for member in members:
        pieces += [body[kept_to : member.start("value")], msgspec.json.encode(model)]
        kept_to = member.end("value")
    return b"".join((*pieces, body[kept_to:]))


def _own(body: bytes, members: list[re.Match[bytes]]) -> Iterator[re.Match[bytes]]:
    """Yields those that belong to the body's own object, and to none within it."""
    looked_to, depth = 0, 0
    for member in members:
        depth += _deeper(body[looked_to : member.start()])
        looked_to = member.start()
        if depth == 1:
            yield member


def _deeper(part: bytes) -> int:
    """Tells how much deeper JSON is nested after a part of it that begins and ends outside of texts."""
    # Backslashes are in texts alone; without escapes every second part between quotes is none of a text.
    bare = b"".join(part.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2])
    return bare.count(b"{") + bare.count(b"[") - bare.count(b"}") - bare.count(b"]")
