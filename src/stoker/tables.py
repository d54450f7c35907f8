"""A table of `stoker.toml` turned into a record; an unknown key is an error that names its path."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from stoker.errors import WrongUse, near_miss
from stoker.records import Record

SERVICE_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
T = TypeVar("T", bound=Record)


def read_tables(tree: Mapping[str, Any], name: str, source: str) -> dict[str, Mapping[str, Any]]:
    """Returns the tables below a name, such as all of `[service.NAME]`."""
    found = tree.get(name, {})
    if not isinstance(found, dict) or not all(isinstance(table, dict) for table in found.values()):
        raise WrongUse(f"{source}: `{name}` should hold tables", next_step=f"write [{name}.NAME] and the keys below it")
    return found


def check_name(name: str, source: str, kind: str = "service") -> str:
    """Returns a service's or workflow's name; raises WrongUse where it could not be a file's name and a unit's."""
    if SERVICE_NAME.fullmatch(name) is None:
        raise WrongUse(
            f"{source}: `{name}` cannot be a {kind}'s name",
            next_step="use lower-case letters, digits, '.', '_' and '-', starting with a letter or digit",
        )
    return name


def check_keys(table: Mapping[str, Any], known: set[str], path: str, source: str) -> None:
    """Raises WrongUse for a key that is not known, with its path and the near miss."""
    for key in table:
        if key not in known:
            raise WrongUse(
                f"{source}: unknown key `{f'{path}.{key}'.lstrip('.')}`",
                why="a mistyped key would be ignored in silence, so none is",
                next_step=near_miss(key, known, f"known here: {', '.join(sorted(known))}"),
            )


def parse_table(table: object, kind: type[T], path: str, source: str, **known: str) -> T:
    """Returns the table as a record; `known` are fields that its place in the file says, so no key may."""
    if not isinstance(table, dict):
        raise WrongUse(f"{source}: `{path}` should be a table", next_step=f"write [{path}] and the keys below it")
    check_keys(table, set(kind.__struct_fields__) - known.keys(), path, source)
    try:
        return msgspec.convert({**known, **table}, kind)
    except msgspec.ValidationError as problem:
        what = str(problem) if "`$" in str(problem) else f"{problem} - at `$`"
        raise WrongUse(
            f"{source}: {what.replace('`$', f'`{path}')}",
            next_step=f"see docs/configuration.md, table [{path.split('.')[0]}]",
        ) from problem
