"""Writes a way to draft into the text of `stoker.toml`, with its evidence as a comment; all else stays as it is. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stoker.clients.toml_table import write_table
from stoker.records import SettingValue, Tiers, Way

MARK = "# tune: "
Value = SettingValue | Tiers


def keys_of(way: Way, draft: str | None) -> dict[str, Value]:
    """Returns what a service's table says of a way; a draft that it does not use is not said."""
    drafts = {"draft": draft} if draft is not None and way.kind not in (None, "off", "ngram") else {}
    return {"speculation": way.keys["speculation"], **drafts, **way.keys} if way.kind is not None else dict(way.keys)


def write_way(text: str, service: str, keys: Sequence[str], said: Mapping[str, Value], evidence: Sequence[str]) -> str:
    """Returns the text with what is said of these keys in the service's table; raises Refused where that is not safe."""
    gone = [name for name in keys if name not in said]
    return write_table(text, ("service", service), said, gone, MARK, evidence)
