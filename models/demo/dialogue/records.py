"""What the generators exchange: messages, tools and whole conversations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Conversation:
    """Messages as a client would send and receive them, the tools offered, and whether it thinks."""

    messages: tuple[Json, ...]
    tools: tuple[Json, ...] = ()
    thinking: bool = False
    kind: str = ""


@dataclass(frozen=True)
class Exchange:
    """One question, its thoughts and its answer."""

    question: str
    answer: str
    thoughts: str = ""


@dataclass(frozen=True)
class Call:
    """A tool call that a question should lead to."""

    name: str
    arguments: Json
    values: Json = field(default_factory=dict)


def user(text: str) -> Json:
    """A user's message."""
    return {"role": "user", "content": text}


def assistant(text: str, thoughts: str = "") -> Json:
    """An answer, after thoughts if there are any."""
    return {"role": "assistant", "content": text} | ({"reasoning_content": thoughts} if thoughts else {})


def calling(call: Call, thoughts: str = "") -> Json:
    """An answer that calls a tool and says nothing."""
    function = {"name": call.name, "arguments": call.arguments}
    message: Json = {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": function}]}
    return message | ({"reasoning_content": thoughts} if thoughts else {})
