"""Reads docker compose files: each service that starts an engine, with its options in docker's own words."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import yaml

from stoker.errors import StokerError
from stoker.plan.written.compose_options import options_of
from stoker.plan.written.containers import Container, contained, pass_environment, split_command
from stoker.plan.written.interpolation import Interpolation
from stoker.plan.written.tree import Tree, read_tree
from stoker.records import Recipe

try:
    from yaml import CSafeLoader as _Base
except ImportError:
    from yaml import SafeLoader as _Base  # type: ignore[assignment]

MOST_SERVICES = 500
MOST_BASES = 8


class _AsWritten(_Base):
    """Keeps every value as it was written: `on`, `0.80` and `8000:8000` are words of a command, not YAML 1.1's numbers."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own way
        first: [(tag, pattern) for tag, pattern in resolvers if tag.endswith((":null", ":merge"))]
        for first, resolvers in _Base.yaml_implicit_resolvers.items()
    }


def looks_like(tree: object, name: str) -> bool:
    """Tells whether a parsed file is a compose file."""
    return isinstance(tree, dict) and isinstance(tree.get("services"), dict)


def read(text: str, name: str) -> tuple[Recipe, ...]:
    """Returns the services that start an engine, or all where none does; raises StokerError where there are none."""
    checked = read_tree(text, name)
    if not looks_like(checked.value, name):
        raise StokerError(f"{name} has no services", next_step="give a compose file")
    tree = yaml.load(text, _AsWritten)  # noqa: S506 - a safe loader; read_tree has refused traps
    services = {str(key): value for key, value in tree["services"].items() if isinstance(value, dict)}
    if not services or len(services) > MOST_SERVICES:
        raise StokerError(f"{name} has {len(services)} services", next_step="give a compose file with the launch")
    found = [_read_service(service, services, checked, name) for service in services]
    engines = [recipe for recipe in found if recipe.engine is not None]
    return tuple(engines or found)


def _read_service(service: str, services: Mapping[str, dict[str, object]], tree: Tree, source: str) -> Recipe:
    said: list[str] = []
    values = Interpolation(said)
    table = _extended(service, services, said)
    options = options_of(table, values)
    environment, notes = pass_environment(values.pairs(table.get("environment")), {})
    said += notes
    said += [f"the variables in `{file}` are not seen here" for file in options.get("env-file", ())]
    image = values.text(table.get("image"))
    if image is None and table.get("build"):
        said.append("its image is built from files that are not seen here")
    entrypoint = _words(table.get("entrypoint"), values)
    if entrypoint:
        options["entrypoint"] = entrypoint[:1]  # docker's option takes one word, the others come before the command
    container = Container(image, options, environment, {})
    found = contained(container, entrypoint, _words(table.get("command"), values))
    return msgspec.structs.replace(
        found,
        kind="compose",
        name=service,
        source=source,
        line=tree.line(f"services.{service}"),
        unknown=tuple(dict.fromkeys((*said, *tree.complaints(), *found.unknown))),
    )


def _extended(service: str, services: Mapping[str, dict[str, object]], said: list[str]) -> dict[str, object]:
    """Returns a service with what it takes from others of the same file by `extends`."""
    table = dict(services[service])
    for _ in range(MOST_BASES):
        base = table.pop("extends", None)
        if base is None:
            break
        other = base.get("service") if isinstance(base, dict) else base
        is_here = isinstance(other, str) and other in services and not (isinstance(base, dict) and base.get("file"))
        if not is_here:
            said.append("it extends a service that is not in this file")
            break
        table = {**services[str(other)], **table}
    return table


def _words(value: object, values: Interpolation) -> tuple[str, ...]:
    """Returns a command that is a list of words, or one text that compose splits as a shell does."""
    if isinstance(value, list):
        return tuple(text for item in value if (text := values.text(item)) is not None)
    text = values.text(value)
    if text is None:
        return ()
    words, notes = split_command(text)
    values.said += notes
    return words
