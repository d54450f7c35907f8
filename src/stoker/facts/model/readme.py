"""Reads the front matter of a model card: the licence, and the model that this one was made from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from stoker.facts.model.documents import read_text

FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
# How quantisers name their releases after the base model.
QUANTISED = re.compile(
    r"[-_.](?:nvfp4|mxfp[48]|fp[48]|awq|gptq|int[48]|nf4|w\d+a\d+|[48]-?bit|bnb|gguf)(?:[-_.].*)?$", re.IGNORECASE
)
FRONT_LIMIT = 64 * 1024


class Card(NamedTuple):
    """What a model card says; None where it does not."""

    licence: str | None = None
    base_model: str | None = None


def read_card(folder: Path, problems: list[str]) -> Card:
    """Returns what the folder's README.md says. Not parsed as YAML: two lines of it are not worth its surprises."""
    content = read_text(folder / "README.md", problems)
    found = FRONT.match(content[:FRONT_LIMIT]) if content else None
    if found is None:
        return Card()
    front = found[1]
    licence = _value(front, "license")
    if licence == "other":
        licence = _value(front, "license_name") or licence
    base = _value(front, "base_model")
    return Card(licence, base if base and REPOSITORY.fullmatch(base) else None)


def _value(front: str, key: str) -> str | None:
    """Returns a key's value, the first where it is a list."""
    found = re.search(rf"^{key}:[ \t]*(.*(?:\r?\n[ \t]*-[ \t]+.*)?)", front, re.MULTILINE)
    if found is None:
        return None
    words = [word.strip(" \t\r'\"[]") for word in re.split(r"\n[ \t]*-[ \t]+|,", found[1])]
    return next((word for word in words if word), None)


def guess_base(repository: str | None) -> str | None:
    """Returns the repository that this one is a quantised copy of, if its name says so and its maker is the same."""
    base = QUANTISED.sub("", repository) if repository else None
    return base if base and base != repository and REPOSITORY.fullmatch(base) else None
