"""Writes keys into one table of a TOML text, with a comment that says why; all else stays as it is. Pure."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from stoker.clients.toml_lines import Lines, find_lines, split_lines
from stoker.errors import Refused

Plain = str | int | float | bool | Sequence[str | int | float | bool]
Value = Plain | Mapping[str, Plain]
VALUE = re.compile(
    r"""(?P<begin>\s*[\w"'.-]+\s*=\s*)(?P<value>"[^"\n]*"|'[^'\n]*'|\{[^{}\n]*\}|[\w.+-]+)(?P<rest>\s*(?:#.*)?)"""
)
BARE = re.compile(r"[A-Za-z0-9_-]+")


def write_table(
    text: str, path: Sequence[str], said: Mapping[str, Value], gone: Sequence[str], mark: str, comments: Sequence[str]
) -> str:
    """Returns the text with these keys in a table (`service`, `coder`), and without those that are gone.

    Comments stand before them, each begun with `mark`; those of the last time go. Raises Refused where the keys cannot be
    put there safely.
    """
    table = ".".join(path)
    lines, where = split_lines(text), find_lines(text)
    block = next((one for one in where.blocks if one.path == table), None)
    if block is None:
        raise _not_there(table, f"there is no line [{table}]")
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    changed = {number: _changed(lines[number - 1], name, said, table) for name in (*said, *gone)
               if (number := _own_line(where, f"{table}.{name}", block.first, block.last))}  # fmt: skip
    missing = [line_of(name, value) for name, value in said.items() if not where.line(f"{table}.{name}")]
    end = "\r\n" if lines[block.first - 1].endswith("\r\n") else "\n"
    new = [line + end for line in [*(mark + one for one in comments), *missing]]
    first = min(changed, default=block.last + 1)
    written = []
    for number, line in enumerate([*lines, ""], 1):
        if number == first:
            written += new
        if not (block.first < number <= block.last and line.lstrip().startswith(mark)):
            written.append(changed.get(number, line))
    return _checked("".join(written), text, path, said, gone)


def _own_line(where: Lines, path: str, first: int, last: int) -> int:
    number = where.line(path)
    return number if first < number <= last else 0


def line_of(name: str, value: Value) -> str:
    """Returns a key's line."""
    return f"{_key(name)} = {_written(value)}"


def _key(name: str) -> str:
    return name if BARE.fullmatch(name) else json.dumps(name)


def _written(value: Value) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(line_of(name, one) for name, one in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    return json.dumps(value, ensure_ascii=False)  # strings, numbers and booleans look the same in TOML


def _changed(line: str, name: str, said: Mapping[str, Value], table: str) -> str:
    """Returns a key's line with its new value, or as a comment where it is not to be said any more."""
    body = line.rstrip("\r\n")
    end = line[len(body) :]
    if name not in said:
        indent = len(body) - len(body.lstrip())
        return f"{body[:indent]}# {body.lstrip()}{end}"
    found = VALUE.fullmatch(body)
    if found is None:
        raise _not_there(table, f"the value of `{name}` goes over several lines")
    return f"{found['begin']}{_written(said[name])}{found['rest']}{end}"


def _checked(new: str, old: str, path: Sequence[str], said: Mapping[str, Value], gone: Sequence[str]) -> str:
    """Returns the new text if it says what the old one said, but for these keys; raises Refused otherwise."""
    wanted: dict[str, Any] = tomllib.loads(old)
    place = wanted
    for part in path:
        place = place[part]
    for name in gone:
        place.pop(name, None)
    place.update(said)
    try:
        found = tomllib.loads(new)
    except ValueError as problem:
        raise _not_there(".".join(path), str(problem)) from problem
    if found != wanted:
        raise _not_there(".".join(path), "the result would say something else, too")
    return new


def _not_there(table: str, why: str) -> Refused:
    return Refused(
        f"the setting cannot be written into the table [{table}]", why=why,
        next_step=f"write it as a table of its own: a line [{table}] and a line for each key",
    )  # fmt: skip
