"""Gives the thinking under the name that clients read: `reasoning`, `reasoning_content`, or both."""

from __future__ import annotations

from typing import Any

import msgspec

from stoker.gateway.filters import CHAT, Fields, Filter, ReplyPart, RequestPart, messages_of

NAMES = ("reasoning", "reasoning_content")
BOTH = "both"


class _Rename:
    cues: tuple[bytes, ...] = (b'"reasoning',)

    def __init__(self, wanted: str) -> None:
        self._wanted = NAMES if wanted == BOTH else (wanted,)

    def read(self, body: dict[str, Any]) -> tuple[str, ...]:
        """Needs no tokens."""
        return ()

    def change(self, body: dict[str, Any], tokens: int | None) -> bool:
        """Renames in each choice; a reply that has the wanted names already stays as it is."""
        renamed = [self._rename(message) for _, message in messages_of(body)]
        return any(renamed)

    def _rename(self, message: dict[str, Any]) -> bool:
        given = {name: message[name] for name in NAMES if isinstance(message.get(name), str)}
        if not given or all(name in given for name in self._wanted):
            return False
        text = next(iter(given.values()))
        for name in given.keys() - set(self._wanted):
            del message[name]
        message.update(dict.fromkeys(self._wanted, text))
        return True


def _make_reply(said: str) -> ReplyPart:
    if said not in ("", BOTH, *NAMES):
        raise ValueError(f"it takes {', '.join(NAMES)} or {BOTH}")
    return _Rename(said or BOTH)


def _make_request(said: str) -> RequestPart:
    return _give_both


def _give_both(_: str, fields: Fields) -> None:
    """A client sends back what it got; which name the engine's template reads is not known, so it gets both."""
    messages: list[dict[str, msgspec.Raw]] | None = fields.read("messages", list[dict[str, msgspec.Raw]])
    lacking = [(one, *names) for one in messages or [] if (names := _lacking(one))]
    for message, has, lacks in lacking:
        message[lacks] = message[has]
    if lacking:
        fields.set("messages", messages)


def _lacking(message: dict[str, msgspec.Raw]) -> tuple[str, str] | None:
    """Returns which name a message has with a text, and which it has not; None where that is not so."""
    for has, lacks in (NAMES, NAMES[::-1]):
        if lacks not in message and bytes(message.get(has, b"")).startswith(b'"'):
            return has, lacks
    return None


FILTER = Filter(
    name="reasoning-field",
    summary="Gives the thinking as reasoning, reasoning_content or both, whichever of them the engine sends.",
    why="Engines spell the field in two ways and changed it between versions; a client that reads the other one finds it "
    "empty. Earlier thinking that a client sends back reaches the engine under both names.",
    paths=frozenset({CHAT}),
    takes="reasoning, reasoning_content or both",
    example="reasoning-field=reasoning_content",
    rules=("reasoning-content-renamed",),
    request=_make_request,
    reply=_make_reply,
)
