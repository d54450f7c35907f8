"""Reads the syntax of systemd's units: sections, directives, continuations, quotes and specifiers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

HEADER = re.compile(r"\[([^\]]+)\]\s*")
SPECIFIER = re.compile(r"%(.)")
ESCAPE = re.compile(r"\\(.)", re.DOTALL)
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "s": " ", "\\": "\\", '"': '"', "'": "'"}
PIECE = re.compile(
    r"(?P<blank>\s+)|'(?P<single>(?:[^'\\]|\\.)*)(?:'|\Z)|\"(?P<double>(?:[^\"\\]|\\.)*)(?:\"|\Z)"
    r"|(?P<plain>(?:[^\s'\"\\]|\\.)+|\\)",
    re.DOTALL,
)


class Directive(NamedTuple):
    """One `Name=value` of a unit, with its section and the line where it begins."""

    section: str
    name: str
    value: str
    line: int


def read_directives(text: str) -> Iterator[Directive]:
    """Returns the directives in their order; a backslash at the end of a line joins it with the next by a blank."""
    section = ""
    for line, content in _joined_lines(text):
        if header := HEADER.fullmatch(content):
            section = header[1]
        elif "=" in content:
            name, _, value = content.partition("=")
            yield Directive(section, name.strip(), value.strip(), line)


def _joined_lines(text: str) -> Iterator[tuple[int, str]]:
    """Returns whole lines with their numbers; comments are left out, also in the middle of a continued line."""
    pieces: list[str] = []
    start = 0
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        if line.lstrip()[:1] in ("#", ";") or (not line.strip() and not pieces):
            continue
        start = start if pieces else number
        if line.endswith("\\"):
            pieces.append(line[:-1])
            continue
        yield start, " ".join([*pieces, line]).strip()
        pieces = []
    if pieces:
        yield start, " ".join(pieces).strip()


def collected(directives: Iterable[Directive]) -> dict[str, tuple[str, ...]]:
    """Returns all values of each directive; an empty one forgets those before it, as systemd does."""
    found: dict[str, list[str]] = {}
    for one in directives:
        values = found.setdefault(one.name, [])
        if one.value:
            values.append(one.value)
        else:
            values.clear()
    return {name: tuple(values) for name, values in found.items() if values}


def split_words(text: str) -> tuple[str, ...]:
    """Splits a value as systemd does: escapes count inside both kinds of quotes, an unpaired quote ends with the line."""
    words: list[str] = []
    word: str | None = None
    for piece in PIECE.finditer(text):
        if piece["blank"]:
            words += [word] if word is not None else []
            word = None
        else:
            inside = next((piece[kind] for kind in ("single", "double") if piece[kind] is not None), piece[0])
            word = (word or "") + ESCAPE.sub(_unescaped, inside)
    return (*words, word) if word is not None else tuple(words)


def _unescaped(found: re.Match[str]) -> str:
    """Returns what an escape means; an unknown one stays as it is, with its backslash."""
    return ESCAPES.get(found[1], found[0])


def specifiers(text: str) -> tuple[str, ...]:
    """Returns the specifiers in a value, `%i` and `%h`, that systemd fills in when it starts the unit."""
    return tuple(dict.fromkeys(found for found in SPECIFIER.findall(text) if found != "%"))


def without_doubled(text: str) -> str:
    """Returns a value as the program sees it: `%%` is one per cent sign."""
    return text.replace("%%", "%")
