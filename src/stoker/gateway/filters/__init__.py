"""The opt-in filters for quirks of clients and engines: one file each, found by listing this folder; each defines `FILTER`.

A filter has a request part, a reply part, or both. What a part does not set stays byte for byte as it came.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from stoker.errors import WrongUse, near_miss
from stoker.records import FilterView

T = TypeVar("T")
CHAT, COMPLETIONS = "/chat/completions", "/completions"
RESPONSES, MESSAGES = "/responses", "/messages"


class Refusal(Exception):
    """A request part cannot let the request through; the client gets it as a 400."""

    def __init__(self, code: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.param = code, message, param


class Fields:
    """A request's JSON body, field by field; the text of each field stays the client's own until it is set."""

    def __init__(self, body: bytes | bytearray) -> None:
        self._raw: dict[str, msgspec.Raw] = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        self.changed = False

    def get(self, name: str) -> Any:
        """Returns a field's value; None where it is absent or null."""
        return self.read(name, Any)

    def read(self, name: str, kind: type[T] | Any) -> Any:
        """Returns a field's value as that type; None where it is absent, null, or something else."""
        raw = self._raw.get(name)
        try:
            return None if raw is None else msgspec.json.decode(raw, type=kind)
        except msgspec.ValidationError:  # the engine says what it thinks of it
            return None

    def set(self, name: str, value: object) -> None:
        """Sets a field."""
        self._raw[name] = msgspec.Raw(msgspec.json.encode(value))
        self.changed = True

    def encode(self) -> bytes:
        """Returns the body with what was set."""
        return msgspec.json.encode(self._raw)


class ReplyPart(Protocol):
    """Changes one reply: a whole one, or event by event. It is made anew for each reply.

    Only JSON texts that hold one of the `cues` are shown to it, as parsed objects.
    """

    cues: tuple[bytes, ...]

    def read(self, body: dict[str, Any]) -> tuple[str, ...]:
        """Takes note of a body; returns the texts whose tokens it has to know before `change`, mostly none."""

    def change(self, body: dict[str, Any], tokens: int | None) -> bool:
        """Changes the body and returns True, or returns False; `tokens` of what was asked for, None for unknown."""


RequestPart = Callable[[str, Fields], None]


class Filter(NamedTuple):
    """What a filter's file tells of it.

    `paths` are the engine's, without `/v1`. `takes` is the form of what follows the name and `=`; empty: nothing does.
    `why` names what goes wrong without it; its evidence are `rules`, by id. `request` and `reply` make the parts from
    what follows the `=` ("" for nothing) and raise ValueError where that makes no sense.
    """

    name: str
    summary: str
    why: str
    paths: frozenset[str]
    takes: str = ""
    example: str = ""
    rules: tuple[str, ...] = ()
    request: Callable[[str], RequestPart] | None = None
    reply: Callable[[str], ReplyPart] | None = None

    def view(self) -> FilterView:
        """Returns it as it is shown."""
        parts = tuple(name for name, part in (("request", self.request), ("reply", self.reply)) if part)
        paths = tuple(sorted(f"/v1{path}" for path in self.paths))
        return FilterView(self.name, self.summary, self.why, self.takes, self.example or self.name, parts, paths, self.rules)


def names() -> list[str]:
    """Returns the names of all filters in this folder."""
    return sorted(found.name.replace("_", "-") for found in pkgutil.iter_modules(__path__))


def find(name: str) -> Filter:
    """Returns one filter; raises WrongUse with the near miss, or with the names that exist."""
    if name not in names():
        hint = near_miss(name, names(), f"choose of: {', '.join(names())}")
        raise WrongUse(f"there is no filter called `{name}`", next_step=hint)
    found: Filter = importlib.import_module(f"{__name__}.{name.replace('-', '_')}").FILTER
    return found


def messages_of(body: Mapping[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    """Returns the messages of a chat's reply, or the deltas of its event, each with its choice's index."""
    choices = body.get("choices")
    dicts = [choice for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else []
    found = [(choice.get("index"), choice.get("message") or choice.get("delta")) for choice in dicts]
    return [(index if isinstance(index, int) else 0, one) for index, one in found if isinstance(one, dict)]
