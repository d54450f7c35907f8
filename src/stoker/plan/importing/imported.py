"""A service that was made of a launch, and the text of its tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stoker.plan.importing.toml import Value, render_comments, render_table
from stoker.records import Record


class Imported(Record, frozen=True):
    """A service made of a launch: the keys of its table, its flags and environment, and sentences on what is not in it.

    `notes` are what the reader of the launch had to say. `keys` is empty where nothing can be started, such as for a model
    that LiteLLM only passes requests to.
    """

    name: str
    keys: dict[str, Value]
    flags: dict[str, Value]
    environment: dict[str, str]
    not_carried_over: tuple[str, ...]
    notes: tuple[str, ...]
    source: str
    line: int


def render_services(services: Iterable[Imported]) -> str:
    """Returns the tables of `stoker.toml`, each with comments on where it comes from and what it lacks."""
    return "\n".join("\n".join(_lines(service)) + "\n" for service in services)


def _lines(service: Imported) -> Iterator[str]:
    place = f"{service.source}, line {service.line}" if service.line else service.source
    lacks = [f"not carried over: {sentence}" for sentence in service.not_carried_over]
    lacks += [f"note: {sentence}" for sentence in service.notes]
    if not service.keys:
        yield from render_comments([f"no service was made of {service.name} in {place}", *lacks])
        return
    yield from render_comments([f"from {place}"])
    path = ("service", service.name)
    yield from render_table(path, service.keys)
    yield from render_comments(lacks)
    for part, values in (("flags", service.flags), ("environment", service.environment)):
        if values:
            yield from ("", *render_table((*path, part), values))
