"""Writes a way to draft into the text of `stoker.toml`, with its evidence as a comment; all else stays as it is. Pure."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from stoker.clients.toml_lines import Lines, find_lines, split_lines
from stoker.errors import Refused
from stoker.records import SettingValue, Tiers, Way

MARK = "# tune: "
Value = SettingValue | Tiers
VALUE = re.compile(
    r"""(?P<begin>\s*[\w"'.-]+\s*=\s*)(?P<value>"[^"\n]*"|'[^'\n]*'|\[[\d\s,\[\]]*\]|[\w.+-]+)(?P<rest>\s*(?:#.*)?)"""
)


def keys_of(way: Way, draft: str | None) -> dict[str, Value]:
    """Returns what a service's table says of a way; a draft that it does not use is not said."""
    drafts = {"draft": draft} if draft is not None and way.kind not in (None, "off", "ngram") else {}
    return {"speculation": way.keys["speculation"], **drafts, **way.keys} if way.kind is not None else dict(way.keys)


def write_way(text: str, service: str, keys: Sequence[str], said: Mapping[str, Value], evidence: Sequence[str]) -> str:
    """Returns the text with what is said of these keys in the service's table; raises Refused where that is not safe."""
    lines, where = split_lines(text), find_lines(text)
    table = f"service.{service}"
    block = next((one for one in where.blocks if one.path == table), None)
    if block is None:
        raise _not_there(service, f"there is no line [{table}]")
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    changed = {number: _changed(lines[number - 1], name, said, service) for name in keys
               if (number := _own_line(where, f"{table}.{name}", block.first, block.last))}  # fmt: skip
    missing = [line_of(name, value) for name, value in said.items() if not where.line(f"{table}.{name}")]
    end = "\r\n" if lines[block.first - 1].endswith("\r\n") else "\n"
    new = [*_said([*(MARK + one for one in evidence), *missing], end)]
    first = min(changed, default=block.last + 1)
    written = []
    for number, line in enumerate([*lines, ""], 1):
        if number == first:
            written += new
        if not (block.first < number <= block.last and line.lstrip().startswith(MARK)):
            written.append(changed.get(number, line))
    return _checked("".join(written), text, service, keys, said)


def _own_line(where: Lines, path: str, first: int, last: int) -> int:
    number = where.line(path)
    return number if first < number <= last else 0


def _said(lines: Sequence[str], end: str) -> list[str]:
    return [line + end for line in lines]


def line_of(name: str, value: Value) -> str:
    """Returns a key's line."""
    return f"{name} = {_written(value)}"


def _written(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, tuple):
        return f"[{', '.join(_written(one) for one in value)}]"
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _changed(line: str, name: str, said: Mapping[str, Value], service: str) -> str:
    """Returns a key's line with its new value, or as a comment where it is not to be said any more."""
    body = line.rstrip("\r\n")
    end = line[len(body) :]
    if name not in said:
        indent = len(body) - len(body.lstrip())
        return f"{body[:indent]}# {body.lstrip()}{end}"
    found = VALUE.fullmatch(body)
    if found is None:
        raise _not_there(service, f"the value of `{name}` goes over several lines")
    return f"{found['begin']}{_written(said[name])}{found['rest']}{end}"


def _checked(new: str, old: str, service: str, keys: Sequence[str], said: Mapping[str, Value]) -> str:
    """Returns the new text if it says what the old one said, but for these keys; raises Refused otherwise."""
    wanted: dict[str, Any] = tomllib.loads(old)
    table = wanted["service"][service]
    for name in keys:
        table.pop(name, None)
    table.update({name: _plain(value) for name, value in said.items()})
    try:
        found = tomllib.loads(new)
    except ValueError as problem:
        raise _not_there(service, str(problem)) from problem
    if found != wanted:
        raise _not_there(service, "the result would say something else, too")
    return new


def _plain(value: Value) -> object:
    """Returns a value as TOML reads it: lists, where a record has tuples."""
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


def _not_there(service: str, why: str) -> Refused:
    return Refused(
        f"the setting cannot be written into the table of {service}", why=why,
        next_step=f"write the service as a table of its own: [service.{service}] and a line for each key",
    )  # fmt: skip
