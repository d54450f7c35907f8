"""Merges consecutive turns of one role, for templates that want user and assistant in turn."""

from __future__ import annotations

from typing import Any

import msgspec

from stoker.gateway.filters import CHAT, MESSAGES, Fields, Filter, RequestPart

ROLES = frozenset({"system", "developer", "user", "assistant"})  # a tool's results belong to one call each
BETWEEN = "\n\n"
Message = dict[str, msgspec.Raw]


def _make(_: str) -> RequestPart:
    return _merge


def _merge(_: str, fields: Fields) -> None:
    messages: list[Message] | None = fields.read("messages", list[Message])
    merged: list[Message] = []
    for message in messages or []:
        joined = _join(merged[-1], message) if merged else None
        if joined is None:
            merged.append(message)
        else:
            merged[-1] = joined
    if messages is not None and len(merged) < len(messages):
        fields.set("messages", merged)


def _join(first: Message, second: Message) -> Message | None:
    """Returns both as one message; None where they differ in more than their content."""
    if _rest(first) != _rest(second) or _decode(first.get("role")) not in ROLES:
        return None
    content = _join_content(_decode(first.get("content")), _decode(second.get("content")))
    return None if content is None else {**first, "content": msgspec.Raw(msgspec.json.encode(content))}


def _rest(message: Message) -> dict[str, bytes]:
    return {name: bytes(raw) for name, raw in message.items() if name != "content"}


def _decode(raw: msgspec.Raw | None) -> Any:
    return None if raw is None else msgspec.json.decode(raw)


def _join_content(first: Any, second: Any) -> str | list[Any] | None:
    """Returns texts as one text, anything with parts as one list of parts; None where one is neither."""
    if isinstance(first, str) and isinstance(second, str):
        return first + BETWEEN + second
    if isinstance(first, str | list) and isinstance(second, str | list):
        return [*_parts(first), *_parts(second)]
    return None


def _parts(content: str | list[Any]) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


FILTER = Filter(
    name="merge-turns",
    summary="Merges consecutive messages of one role into one.",
    why="Some clients send two messages of one role in a row, and templates such as Mistral's refuse them. Texts are joined "
    "by a blank line, lists of parts are put together; messages with tool calls or other differing fields are left alone.",
    paths=frozenset({CHAT, MESSAGES}),
    rules=("openhands-alternating-roles",),
    request=_make,
)
