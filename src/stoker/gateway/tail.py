"""What the beginning and the end of a reply tell: how many tokens it took, and which model says that it answered."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, NamedTuple

USAGE = b'"usage"'
BEGINS, ENDS = b'"message_start"', b'"message_delta"'
# Not preceded by a backslash: that would be an answer's text that speaks of JSON.
MODEL = re.compile(rb'(?<!\\)"model"\s*:\s*("(?:[^"\\]|\\.)*")')
DECODER = json.JSONDecoder()
PROMPT, COMPLETION = ("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens")


class Counted(NamedTuple):
    """What an engine counted; None: it did not say."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None


def read_counted(opening: bytes, tail: bytes) -> Counted:
    """Returns the last usage in a reply; OpenAI's names and Anthropic's.

    Anthropic's streams say at their beginning what was read, and at their end what was written.
    """
    last = _last_counted(tail)
    if BEGINS not in opening:
        return last
    first = _last_counted(opening.partition(b"\n\n")[0])
    written = last.completion_tokens if ENDS in tail else None
    prompt = first.prompt_tokens if last.prompt_tokens is None else last.prompt_tokens
    return Counted(prompt, written, first.cached_tokens if last.cached_tokens is None else last.cached_tokens)


def _last_counted(tail: bytes) -> Counted:
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


@lru_cache(64)
def _names(model: str) -> tuple[bytes, bytes]:
    """Returns how an engine writes that a model answers: without and with a space, as JSON's encoders do."""
    name = json.dumps(model, ensure_ascii=False).encode()
    return b'"model":' + name, b'"model": ' + name


def names_another(model: str, said: bytes) -> str | None:
    """Returns the model that a reply names in place of the one that was asked; None where it names that or none."""
    short, spaced = _names(model)
    if short in said or spaced in said:
        return None
    found = read_models(said)
    return found[-1] if found and model not in found else None


def read_models(said: bytes) -> tuple[str, ...]:
    """Returns the models that a reply names; an answer's own data may hold further ones."""
    return tuple(name for text in dict.fromkeys(MODEL.findall(said)) if (name := _text(text)) is not None)


def _text(raw: bytes) -> str | None:
    try:
        return str(json.loads(raw))
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
