"""What the control API offers, one value a use: its route and its description are made from the same."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp

from stoker.records import Record

NOTHING: Mapping[str, Any] = MappingProxyType({})


class Offer(NamedTuple):
    """One use. `gives` is the type of the reply's JSON, `takes` that of the body; `asks` are the query's, by name.

    `kind` is the reply's content type.
    """

    method: str
    path: str
    answer: Callable[[Request], Awaitable[ASGIApp]]
    what: str
    gives: Any
    takes: type[Record] | None = None
    asks: Mapping[str, Any] = NOTHING
    kind: str = "application/json"

    @property
    def route(self) -> Route:
        """The route that leads to it."""
        # A model's name may have slashes in it.
        return Route(self.path.replace("{model}", "{model:path}"), self.answer, methods=[self.method])
