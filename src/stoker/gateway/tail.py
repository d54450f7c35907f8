"""What the end of a reply tells: how many tokens it took, and which model says that it answered."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

USAGE = b'"usage"'
# Not preceded by a backslash: that would be an answer's text that speaks of JSON.
MODEL = re.compile(rb'(?<!\\)"model"\s*:\s*("(?:[^"\\]|\\.)*")')
DECODER = json.JSONDecoder()
PROMPT, COMPLETION = ("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens")


class Counted(NamedTuple):
    """What an engine counted; None: it did not say."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None


def read_counted(tail: bytes) -> Counted:
    """Returns the last usage in a reply's last bytes; OpenAI's names and Anthropic's."""
    end = len(tail)
    while (at := tail.rfind(USAGE, 0, end)) >= 0:
        found = _object_after(tail, at + len(USAGE))
        if found:
            details = found.get("prompt_tokens_details") or found.get("input_tokens_details") or {}
            cached = details.get("cached_tokens") if isinstance(details, dict) else None
            cached = found.get("cache_read_input_tokens") if cached is None else cached
            return Counted(_first(found, PROMPT), _first(found, COMPLETION), _count(cached))
        end = at
    return Counted()


def read_model(tail: bytes) -> str | None:
    """Returns the model that a reply names last, or None."""
    found = MODEL.findall(tail)
    try:
        return str(json.loads(found[-1])) if found else None
    except ValueError:
        return None


def _object_after(tail: bytes, at: int) -> dict[str, Any] | None:
    text = tail[at:].decode("utf-8", "replace").lstrip().removeprefix(":").lstrip()
    if not text.startswith("{"):
        return None
    try:
        found = DECODER.raw_decode(text)[0]
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _first(found: dict[str, Any], names: tuple[str, ...]) -> int | None:
    return next((count for name in names if (count := _count(found.get(name))) is not None), None)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
