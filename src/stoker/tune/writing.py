"""Writes a way to draft into the text of `stoker.toml`, with its evidence as a comment; all else stays as it is. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stoker.clients.toml_table import write_table
from stoker.records import Way

KEYS = ("speculation", "draft", "draft_tokens")
MARK = "# tune: "


def keys_of(way: Way, draft: str | None) -> dict[str, str | int]:
    """Returns what a service's table says of a way; a draft that it does not use is not said."""
    said: dict[str, str | int] = {"speculation": way.kind}
    if draft is not None and way.kind not in ("off", "ngram"):
        said["draft"] = draft
    return said | ({"draft_tokens": way.draft_tokens} if way.draft_tokens is not None else {})


def write_way(text: str, service: str, said: Mapping[str, str | int], evidence: Sequence[str]) -> str:
    """Returns the text with these keys in the service's table; raises Refused where they cannot be put there safely."""
    gone = [name for name in KEYS if name not in said]
    return write_table(text, ("service", service), said, gone, MARK, evidence)
