"""Reads the small JSON files beside a model's weights, and takes typed values out of them.

A config is other people's input: a value of the wrong type is as good as none.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Document = dict[str, Any]
LIMIT_BYTES = 16 * 1024**2
MOST = 2**40  # no count in a model's config comes near it; products of a few such stay cheap


def read_text(file: Path, problems: list[str], limit_bytes: int = LIMIT_BYTES) -> str | None:
    """Returns a file's text; None where there is no such file, or where it is unreadable, which is noted."""
    content = read_content(file, problems, limit_bytes)
    return None if content is None else content.decode(errors="replace")


def read_content(file: Path, problems: list[str], limit_bytes: int) -> bytes | None:
    """Returns a file's bytes; None where there is no such file, or where it is unreadable, which is noted."""
    if not file.is_file():  # a pipe of that name would be waited for
        return None
    try:
        size_bytes = file.stat().st_size
        if size_bytes <= limit_bytes:
            return file.read_bytes()
        problems.append(f"{file.name} has {size_bytes:,} bytes, and no such file is that long")
    except OSError as problem:
        problems.append(f"{file.name} cannot be read: {problem.strerror}")
    return None


def read_document(file: Path, problems: list[str]) -> Document:
    """Returns the JSON object in a file; an empty one where there is none, or where it is damaged, which is noted."""
    text = read_text(file, problems)
    if text is None:
        return {}
    try:
        # Not msgspec: Transformers writes Infinity, which is no JSON, into the configs of Mamba models.
        found = json.loads(text)
    except (ValueError, RecursionError) as problem:
        problems.append(f"{file.name} is damaged: {problem}")
        return {}
    if isinstance(found, dict):
        return found
    problems.append(f"{file.name} holds no table of keys and values")
    return {}


def whole(document: Document, *names: str) -> int | None:
    """Returns the first of the names that holds a count."""
    for name in names:
        found = document.get(name)
        if isinstance(found, int) and not isinstance(found, bool) and 0 <= found <= MOST:
            return found
    return None


def text(document: Document, *names: str) -> str | None:
    """Returns the first of the names that holds a word."""
    for name in names:
        found = document.get(name)
        if isinstance(found, str) and found:
            return found
    return None


def table(document: Document, *names: str) -> Document:
    """Returns the first of the names that holds a table; else an empty one."""
    for name in names:
        found = document.get(name)
        if isinstance(found, dict) and found:
            return found
    return {}


def items(document: Document, *names: str) -> list[Any]:
    """Returns the first of the names that holds a list; else an empty one."""
    for name in names:
        found = document.get(name)
        if isinstance(found, list) and found:
            return found
    return []
