"""Maps `reasoning_effort` to what the engine understands, and refuses what nothing is known of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from stoker.gateway.filters import CHAT, RESPONSES, Fields, Filter, Refusal, RequestPart


def _make(said: str) -> RequestPart:
    efforts = _parse(said)

    def map_effort(_: str, fields: Fields) -> None:
        effort = fields.get("reasoning_effort")
        if isinstance(effort, str):
            _set_if_other(fields, "reasoning_effort", effort, _find(efforts, effort, "reasoning_effort"))
        nested: dict[str, msgspec.Raw] | None = fields.read("reasoning", dict[str, msgspec.Raw])
        inner = _decode(nested.get("effort")) if nested else None
        if nested and isinstance(inner, str):
            wanted = _find(efforts, inner, "reasoning.effort")
            if wanted != inner:
                fields.set("reasoning", {**nested, "effort": wanted})

    return map_effort


def _parse(said: str) -> dict[str, str]:
    pairs = [pair.partition(":") for pair in said.split(",")]
    efforts = {source.strip(): (target if colon else source).strip() for source, colon, target in pairs}
    if not all(efforts) or not all(efforts.values()) or len(efforts) < len(pairs):
        raise ValueError("it takes efforts, each once, with what each becomes")
    # What an effort becomes is understood as it is.
    return {**{target: target for target in efforts.values()}, **efforts}


def _find(efforts: Mapping[str, str], effort: str, param: str) -> str:
    if effort not in efforts:
        known = ", ".join(f"`{one}`" for one in sorted(efforts))
        message = f"This model does not understand {param} `{effort}`, and would pass over it. It understands: {known}."
        raise Refusal("reasoning_effort_unknown", message, param)
    return efforts[effort]


def _set_if_other(fields: Fields, name: str, value: str, wanted: str) -> None:
    if wanted != value:
        fields.set(name, wanted)


def _decode(raw: msgspec.Raw | None) -> Any:
    return None if raw is None else msgspec.json.decode(raw)


FILTER = Filter(
    name="reasoning-effort",
    summary="Maps reasoning_effort to what the model understands, and refuses other values with a 400.",
    why="Models know few of the efforts that clients send: the rest is passed over in silence, or refused by a template. "
    "What stands right of a colon is understood as it is; a request that says no effort is left alone.",
    paths=frozenset({CHAT, RESPONSES}),
    takes="EFFORT:BECOMES,…",
    example="reasoning-effort=none,minimal:none,low:high,medium:high",
    rules=("mistral4-reasoning-effort-high-none", "qwen38-effort-400"),
    request=_make,
)
