"""Where the tables and keys of a TOML text stand; tomllib reads the values and tells no lines."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import NamedTuple

from stoker.errors import StokerError

KEY = re.compile(r"""\s*((?:"[^"\n]*"|'[^'\n]*'|[\w-]+)(?:\s*\.\s*(?:"[^"\n]*"|'[^'\n]*'|[\w-]+))*)\s*=""")
# What a line holds beside plain signs: strings that end in it, strings that may not, comments, brackets.
PIECES = re.compile(r'"""|\'\'\'|"(?:[^"\\]|\\.)*"|\'[^\']*\'|#.*|[\[{]|[\]}]')


def split_lines(text: str) -> list[str]:
    """Returns the lines with their ends; TOML knows two kinds of these, and str.splitlines() ten."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


class Block(NamedTuple):
    """A table with its keys, from its header to the last line that is its own; lines count from 1."""

    path: str
    first: int
    last: int


class Lines(NamedTuple):
    """The line of each table and key by its path (`mcp_servers.0.command`), and the tables in order."""

    keys: dict[str, int]
    blocks: tuple[Block, ...]

    def line(self, path: str) -> int:
        """Returns the line of a key or table, or 0 where it is not in the text."""
        return self.keys.get(path, 0)

    def block(self, path: str) -> Block | None:
        """Returns a table with those below it, as far as they follow it at once."""
        own = [one for one in self.blocks if one.path == path or one.path.startswith(f"{path}.")]
        return Block(path, own[0].first, own[-1].last) if own else None


def read_toml(text: str, name: str) -> dict[str, object]:
    """Returns the values; raises StokerError where it is not TOML."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as problem:
        raise StokerError(
            f"{name} is not valid TOML", why=f"{problem}; the program that reads it refuses to start",
            next_step="mend that line and try again",
        ) from problem  # fmt: skip


def find_lines(text: str) -> Lines:
    """Returns where everything stands in a text that tomllib has read."""
    keys: dict[str, int] = {}
    headers: list[tuple[str, int]] = []
    counts: dict[str, int] = {}
    table = ""
    for number, line in _statements(text):
        if line.lstrip().startswith("["):
            table = _table_path(line, counts)
            headers.append((table, number))
            keys.setdefault(table, number)
        elif found := KEY.match(line):
            keys.setdefault(f"{table}.{_parts(found[1])}".lstrip("."), number)
    return Lines(keys, tuple(_blocks(headers, split_lines(text))))


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yields the lines on which a header or a key may begin: none inside a list or a string of several lines."""
    depth, quote = 0, ""
    for number, line in enumerate(split_lines(text), 1):
        if not depth and not quote:
            yield number, line
        header = not depth and not quote and line.lstrip().startswith("[")
        depth, quote = (0, "") if header else _after(line, depth, quote)


def _after(line: str, depth: int, quote: str) -> tuple[int, str]:
    """How many brackets are open at the end of a line, and which long string."""
    place = 0
    while place < len(line):
        if quote:
            end = line.find(quote, place)
            if end < 0:
                return depth, quote
            place, quote = end + 3, ""
            continue
        found = PIECES.search(line, place)
        if found is None:
            break
        piece, place = found[0], found.end()
        quote = piece if piece in ('"""', "'''") else ""
        depth += (piece in "[{") - (piece in "]}")
    return depth, quote


def _table_path(line: str, counts: dict[str, int]) -> str:
    """The path of a header, each list of tables with the number of the table that it is or lies in."""
    is_item = line.lstrip().startswith("[[")
    inner = line.strip().lstrip("[").partition("]")[0]
    path = ""
    names = _parts(inner).split(".")
    for place, name in enumerate(names):
        path = f"{path}.{name}".lstrip(".")
        if is_item and place == len(names) - 1:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = f"{path}.{counts[path]}"
    return path


def _parts(key: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in key.split("."))


def _blocks(headers: list[tuple[str, int]], lines: list[str]) -> Iterator[Block]:
    """Each table up to the next; comments and blank lines right before a header belong to that one."""
    ends = [number - 1 for _, number in headers[1:]] + [len(lines)]
    for (path, first), end in zip(headers, ends[-len(headers) :], strict=True) if headers else ():
        last = end
        while last > first and (not lines[last - 1].strip() or lines[last - 1].lstrip().startswith("#")):
            last -= 1
        yield Block(path, first, last)
