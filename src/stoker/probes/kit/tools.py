"""The tools that probes offer, and whether a call of them is one."""

from __future__ import annotations

from typing import Any

import msgspec

from stoker.probes.kit.answer import ToolCall

QUESTION = "What is the weather in Paris?"
TWO_QUESTIONS = "What is the weather in Paris and in Rome?"
TOKENS = 40


class Arguments(msgspec.Struct, forbid_unknown_fields=True):
    """The arguments of both tools, as their schema wants them."""

    city: str


SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "The name of the city."}},
    "required": ["city"],
    "additionalProperties": False,
}


def _tool(name: str, what: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": what, "parameters": SCHEMA}}


TOOLS = [_tool("get_weather", "Get the current weather in a city."), _tool("get_time", "Get the current time in a city.")]
NAMES = frozenset(one["function"]["name"] for one in TOOLS)


def named(name: str) -> dict[str, Any]:
    """Returns the choice of one tool."""
    return {"type": "function", "function": {"name": name}}


def called(arguments: str, result: str) -> list[dict[str, Any]]:
    """Returns the question, the model's call of the weather with these arguments, and what the tool said."""
    call = {"id": "call00001", "type": "function", "function": {"name": "get_weather", "arguments": arguments}}
    return [
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call00001", "content": result},
    ]


def fault_of(call: ToolCall) -> str:
    """Returns what is wrong with a call in itself; empty where nothing is."""
    if call.name not in NAMES:
        return f"it calls {call.name or 'nothing'!r}, which was not offered"
    if not call.id:
        return "its call has no id, so no result can be given for it"
    try:
        msgspec.json.decode(call.arguments, type=Arguments)
    except msgspec.ValidationError as problem:
        return f"its arguments {call.arguments[:80]} are not what the schema wants: {problem}"
    except msgspec.MsgspecError as problem:
        return f"its arguments {call.arguments[:80]!r} are no JSON: {problem}"
    return ""


def is_same(one: ToolCall, other: ToolCall) -> bool:
    """Tells whether two faultless calls say the same; engines put blanks elsewhere where they write JSON anew."""
    said, again = (msgspec.json.decode(call.arguments, type=Arguments) for call in (one, other))
    return one.name == other.name and said == again
