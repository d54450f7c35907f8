"""Writes TOML: tables of texts, numbers, switches and lists of them, with comments; what tomllib reads back as it was."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from stoker.records import SettingValue

Value = SettingValue | tuple[SettingValue, ...]
BARE = re.compile(r"[A-Za-z0-9_-]+")
WIDEST = 125


def render_table(path: tuple[str, ...], values: Mapping[str, Value]) -> Iterator[str]:
    """Yields the lines of one table: its header, then a line for each key."""
    yield f"[{'.'.join(render_key(part) for part in path)}]"
    for key, value in values.items():
        yield f"{render_key(key)} = {render_value(value)}"


def render_comments(sentences: Iterable[str]) -> Iterator[str]:
    """Yields one comment line for each sentence, whatever signs are in it."""
    for sentence in sentences:
        yield f"# {_one_line(sentence)}"


def render_key(key: str) -> str:
    """Returns a key, bare where TOML allows that."""
    return key if BARE.fullmatch(key) else _text(key)


def render_value(value: Value) -> str:
    """Returns a value as TOML writes it."""
    if isinstance(value, tuple):
        return f"[{', '.join(render_value(item) for item in value)}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _text(value) if isinstance(value, str) else repr(value)


def _text(text: str) -> str:
    """Returns a basic string: JSON's escapes are TOML's too, and only DEL is free in the one and not in the other.

    JSON inside would be half backslashes, so it becomes a literal string where that can hold it.
    """
    whole = text.encode("utf-8", "replace").decode()  # half of a surrogate pair is no text anywhere
    if '"' in whole and "'" not in whole and whole.isprintable():
        return f"'{whole}'"
    return json.dumps(whole, ensure_ascii=False).replace("\x7f", "\\u007f")


def _one_line(sentence: str) -> str:
    line = " ".join(sentence.encode("utf-8", "replace").decode().split())
    return "".join(letter if letter.isprintable() else "?" for letter in line)
