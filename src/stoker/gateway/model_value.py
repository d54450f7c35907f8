"""Puts the real model's name where a request's body says an alias; every other byte stays as it came. Pure."""

from __future__ import annotations

import re

import msgspec

# A key may spell any of its letters as an escape. What is found is a key and nothing else: within a text a quote has a
# backslash before it, and after a text that is no key comes no colon.
_KEY = rb"".join(rb"(?:%c|\\u00(?i:%02x))" % (letter, letter) for letter in b"model")
_TEXT = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_MEMBER = re.compile(rb'(?<!\\)"' + _KEY + rb'"[ \t\n\r]*:[ \t\n\r]*(?P<value>' + _TEXT + rb")", re.DOTALL)


def replace_model(body: bytes, model: str) -> bytes:
    """Returns a JSON object with the value of its own `model` replaced, and of each, where it says it more than once.

    The body must be one that msgspec reads as an object with a text `model`: of two it takes the last, others the first.
    """
    pieces, kept_to, looked_to, depth = [], 0, 0, 0
    for found in _MEMBER.finditer(body):
        depth += _deeper(body[looked_to : found.start()])
        looked_to = found.start()
        if depth == 1:
            pieces += [body[kept_to : found.start("value")], msgspec.json.encode(model)]
            kept_to = found.end("value")
    return b"".join((*pieces, body[kept_to:]))


def _deeper(part: bytes) -> int:
    """Tells how much deeper JSON is nested after a part of it that begins and ends outside of texts."""
    # Backslashes are in texts alone; without escapes every second part between quotes is none of a text.
    bare = b"".join(part.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2])
    return bare.count(b"{") + bare.count(b"[") - bare.count(b"}") - bare.count(b"]")
