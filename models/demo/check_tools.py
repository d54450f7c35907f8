"""Scores tool calls on held-out prompts through llama.cpp's server."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llama_server import Client

TYPES: dict[str, tuple[type, ...]] = {"string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,)}


@dataclass(frozen=True)
class Verdict:
    """How one prompt was answered: picked, the right tool with valid arguments (or none where none fits); right, also
    every argument as expected; valid, some tool's schema was obeyed.
    """

    kind: str
    right: bool
    picked: bool
    valid: bool
    got: Any


def parsed_call(message: dict[str, Any]) -> dict[str, Any] | None:
    """The single tool call of a message with its arguments read; None when there is none."""
    calls = message.get("tool_calls") or []
    if len(calls) != 1:
        return None
    function = calls[0]["function"]
    return {"name": function["name"], "arguments": json.loads(function["arguments"])}


def fits_type(value: Any, wanted: str) -> bool:
    """Whether a JSON value has a schema's type; true and false are no numbers."""
    return isinstance(value, TYPES[wanted]) and (wanted == "boolean" or not isinstance(value, bool))


def obeys(call: dict[str, Any], tools: Iterable[dict[str, Any]]) -> bool:
    """Whether the called tool exists and its arguments satisfy the tool's schema."""
    schemas = {tool["function"]["name"]: tool["function"].get("parameters", {}) for tool in tools}
    if call["name"] not in schemas:
        return False
    schema, given = schemas[call["name"]], call["arguments"]
    properties = schema.get("properties", {})
    complete = set(schema.get("required", ())) <= set(given) <= set(properties)
    return complete and all(
        fits_type(value, properties[name]["type"]) and value in properties[name].get("enum", [value])
        for name, value in given.items()
    )


def judge(client: Client, prompt: dict[str, Any]) -> Verdict:
    """Asks one prompt and compares the answer with what is expected."""
    message = client.chat(prompt["messages"], tools=prompt["tools"], tool_choice="auto")
    try:
        call = parsed_call(message)
    except json.JSONDecodeError:
        return Verdict(prompt["kind"], False, False, False, message)
    if prompt["expected"] is None:
        plain = not message.get("tool_calls") and bool((message.get("content") or "").strip())
        return Verdict(prompt["kind"], plain, plain, plain, message)
    valid = call is not None and obeys(call, prompt["tools"])
    picked = call is not None and valid and call["name"] == prompt["expected"]["name"]
    return Verdict(prompt["kind"], call == prompt["expected"], picked, valid, call or message.get("content"))


def read_prompts(path: Path) -> list[dict[str, Any]]:
    """The prompts of one file, a JSON object a line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def tool_scores(verdicts: list[Verdict]) -> dict[str, Any]:
    """Shares of right and of valid answers, together and by kind of prompt."""
    asked, right = Counter(v.kind for v in verdicts), Counter(v.kind for v in verdicts if v.right)
    return {
        "prompts": len(verdicts),
        "picked": round(sum(v.picked for v in verdicts) / len(verdicts), 4),
        "right": round(sum(right.values()) / len(verdicts), 4),
        "valid": round(sum(v.valid for v in verdicts) / len(verdicts), 4),
        "by_kind": {kind: f"{right[kind]} of {count}" for kind, count in sorted(asked.items())},
    }
