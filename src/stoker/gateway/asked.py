"""What a request asks for, read from its body without taking the whole of it apart."""

from __future__ import annotations

import re
from itertools import islice, pairwise
from typing import NamedTuple

import msgspec

from stoker.gateway.exchange import Exchange
from stoker.gateway.refusals import refuse

MOST_PARTS = 1000  # of a form
BYTES_PER_TOKEN = 4  # a rough estimate, for limits on what is in flight; an engine counts exactly
BOUNDARY = re.compile(rb'boundary="?([^";,\s]{1,70})"?', re.IGNORECASE)
MODEL_PART = re.compile(
    rb'^content-disposition:[^\r\n]*;[ \t]*name=(?:model|"model")[ \t]*(?=[;\r]|\Z)', re.IGNORECASE | re.MULTILINE
)


class Asked(NamedTuple):
    """The model, whether the reply is to be a stream, and about how many tokens are read and written at most.

    `model` is empty where the path names a service instead; who in it answers is told by nobody.
    """

    model: str
    is_stream: bool
    tokens: int


class _Body(msgspec.Struct):
    model: str
    stream: object = None
    max_tokens: object = None
    max_completion_tokens: object = None
    max_output_tokens: object = None


def read_asked(exchange: Exchange) -> Asked | None:
    """Returns what a body asks for; answers 400 and returns None where it names no model."""
    return _read_json(exchange) if exchange.request.is_json else _read_form(exchange)


def _read_json(exchange: Exchange) -> Asked | None:
    body = exchange.request.body
    try:
        found = msgspec.json.decode(body, type=_Body)
    except msgspec.ValidationError as problem:
        message = f"The body must be a JSON object with a text `model`: {problem}."
        refuse(exchange, 400, "invalid_model", message, param="model")
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        refuse(exchange, 400, "invalid_json", f"The body is not valid JSON: {problem}.")
    except RecursionError:
        refuse(exchange, 400, "nested_too_deeply", "The body's JSON is nested too deeply.")
    else:
        limits = (found.max_completion_tokens, found.max_tokens, found.max_output_tokens)
        written = next((limit for limit in limits if isinstance(limit, int) and limit > 0), 0)
        return Asked(found.model, found.stream is True, len(body) // BYTES_PER_TOKEN + written)
    return None


def _read_form(exchange: Exchange) -> Asked | None:
    boundary = BOUNDARY.search(exchange.request.header(b"content-type") or b"")
    model = _field(bytes(exchange.request.body), boundary[1]) if boundary else None
    if model is None:
        refuse(exchange, 400, "invalid_model", "The form has no field `model`.", param="model")
        return None
    return Asked(model, False, 0)


def _field(body: bytes, boundary: bytes) -> str | None:
    """Returns the value of the one field `model`; None where there is none, or more than one to choose from."""
    found = []
    line = re.compile(rb"(?:\A|\r\n)--" + re.escape(boundary) + rb"(--)?[ \t]*(?=\r\n|\Z)")
    lines = list(islice(line.finditer(body), MOST_PARTS + 1))
    for this, following in pairwise(lines):
        head, ends, value = body[this.end() : following.start()].partition(b"\r\n\r\n")
        if this[1] or len(lines) > MOST_PARTS:
            break
        if ends and MODEL_PART.search(head):
            found.append(value)
    return found[0].decode("utf-8", "replace") if len(found) == 1 else None
