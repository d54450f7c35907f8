"""A filter of the gateway, as it is shown."""

from __future__ import annotations

from stoker.records.base import Record


class FilterView(Record, frozen=True):
    """What a filter does and why; `example` is how `filters` of a service says it, `rules` are its evidence, by id.

    `parts` are those of 'request' and 'reply' that it may change, `paths` the paths on which it does.
    """

    name: str
    summary: str
    why: str
    takes: str
    example: str
    parts: tuple[str, ...]
    paths: tuple[str, ...]
    rules: tuple[str, ...]
