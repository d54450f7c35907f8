"""The filters of one service, in the order in which `stoker.toml` says them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

import msgspec

from stoker.errors import WrongUse
from stoker.gateway.filters import Fields, Filter, Refusal, ReplyPart, find

T = TypeVar("T")
DESCRIBED = "`stoker rules --filters` lists them"


class Chain:
    """Filters with their settings, made of words such as `cap-tokens=4096`; raises WrongUse for one that makes no sense."""

    def __init__(self, said: tuple[str, ...]) -> None:
        self._said = [_parse(one) for one in said]
        names = [one.name for one, _ in self._said]
        if twice := {name for name in names if names.count(name) > 1}:
            raise WrongUse(f"the filter `{twice.pop()}` is said twice", next_step="say it once, with one setting")
        self._requests = [(one.paths, _make(one, one.request, what)) for one, what in self._said if one.request]
        for one, what in self._said:
            if one.reply:
                _make(one, one.reply, what)
        self.headers = [(b"x-stoker-filters", ", ".join(names).encode())] if names else []

    def request(self, path: str, body: bytes | bytearray) -> bytes | bytearray:
        """Returns what the engine gets of a request's body, the same where no filter changes it; raises Refusal."""
        inner = path.removeprefix("/v1")
        parts = [part for paths, part in self._requests if inner in paths]
        if not parts:
            return body
        try:
            fields = Fields(body)
            for part in parts:
                part(inner, fields)
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            raise Refusal("invalid_json", f"The body is not valid JSON: {problem}.") from problem
        except RecursionError as problem:
            raise Refusal("nested_too_deeply", "The body's JSON is nested too deeply.") from problem
        return fields.encode() if fields.changed else body

    def reply_parts(self, path: str) -> tuple[ReplyPart, ...]:
        """Returns fresh parts for one reply; none where no filter has a part in it."""
        inner = path.removeprefix("/v1")
        return tuple(one.reply(what) for one, what in self._said if one.reply and inner in one.paths)


def _parse(said: str) -> tuple[Filter, str]:
    name, equals, what = said.partition("=")
    found = find(name.strip())
    if equals and not found.takes:
        raise WrongUse(f"the filter `{found.name}` takes no setting, and `{said}` gives one", next_step=DESCRIBED)
    return found, what.strip()


def _make(found: Filter, make: Callable[[str], T], what: str) -> T:
    try:
        return make(what)
    except ValueError as problem:
        raise WrongUse(
            f"the filter `{found.name}` cannot work with `{what}`" if what else f"the filter `{found.name}` needs a setting",
            why=str(problem),
            next_step=f"for example `{found.example}`; {DESCRIBED}",
        ) from problem


@lru_cache(maxsize=256)
def chain_of(said: tuple[str, ...]) -> Chain:
    """Returns the chain for a service's `filters`."""
    return Chain(said)
