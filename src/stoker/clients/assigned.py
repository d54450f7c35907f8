"""Finds what a text assigns to names, whether it is a script, an environment file, a compose file or Python."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import zip_longest

from stoker.records import ClientUse, Written

VALUE = r"""["']?\s*[=:]\s*(?:"([^"\n]*)"|'([^'\n]*)'|([^\s,;)}\\"']+))"""


def find_assigned(text: str, names: Iterable[str]) -> list[Written]:
    """Returns what is assigned to any of the names (`NAME=value`, `NAME: value`, `name="value"`), in order."""
    pattern = re.compile(rf"(?<![\w.])({'|'.join(map(re.escape, names))}){VALUE}")
    return [found for number, line in code_lines(text) for found in _in_line(pattern, line, number)]


def _in_line(pattern: re.Pattern[str], line: str, number: int) -> Iterator[Written]:
    for found in pattern.finditer(line):
        value = next((group for group in found.groups()[1:] if group is not None), "")
        yield Written(value, found[1], number)


def find_pattern(text: str, pattern: re.Pattern[str], path: str) -> list[Written]:
    """Returns what the first group of a pattern finds, line by line."""
    return [Written(found[1], path, number) for number, line in code_lines(text) for found in pattern.finditer(line)]


def code_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yields the lines that are no comments, each with its number."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.lstrip().startswith(("#", "//")):
            yield number, line


def join_uses(urls: list[Written], keys: list[Written], models: list[Written]) -> tuple[ClientUse, ...]:
    """Returns what belongs together: the first of each, the second of each, and so on."""
    return tuple(ClientUse(url, key, model) for url, key, model in zip_longest(urls, keys, models))
