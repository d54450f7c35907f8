"""Finds the field `model` in a multipart form, as uploads of sounds and pictures are, and puts another name there. Pure."""

from __future__ import annotations

import re
from itertools import islice, pairwise
from typing import NamedTuple

MOST_PARTS = 1000
BOUNDARY = re.compile(rb'boundary="?([^";,\s]{1,70})"?', re.IGNORECASE)
MODEL_PART = re.compile(
    rb'^content-disposition:[^\r\n]*;[ \t]*name=(?:model|"model")[ \t]*(?=[;\r]|\Z)', re.IGNORECASE | re.MULTILINE
)


class ModelField(NamedTuple):
    """The model that a form names, and where in the body its name begins and ends."""

    model: str
    begin: int
    end: int


def find_model(kind: bytes, body: bytes) -> ModelField | None:
    """Returns the one field `model` of a form, whose content type is `kind`; None for none, and for several."""
    boundary = BOUNDARY.search(kind)
    found = _fields(body, boundary[1]) if boundary else []
    return found[0] if len(found) == 1 else None


def rename_model(kind: bytes, body: bytes, model: str) -> bytes:
    """Returns the form with another value of its field `model`; every other byte stays, and so does a form without one."""
    field = find_model(kind, body)
    return body if field is None else body[: field.begin] + model.encode() + body[field.end :]


def _fields(body: bytes, boundary: bytes) -> list[ModelField]:
    found = []
    line = re.compile(rb"(?:\A|\r\n)--" + re.escape(boundary) + rb"(--)?[ \t]*(?=\r\n|\Z)")
    lines = list(islice(line.finditer(body), MOST_PARTS + 1))
    for this, following in pairwise(lines):
        head, ends, value = body[this.end() : following.start()].partition(b"\r\n\r\n")
        if this[1] or len(lines) > MOST_PARTS:
            break
        if ends and MODEL_PART.search(head):
            end = following.start()
            found.append(ModelField(value.decode("utf-8", "replace"), end - len(value), end))
    return found
