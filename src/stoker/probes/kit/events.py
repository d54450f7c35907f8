"""Reads a stream of server-sent events, each with the time at which it had come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from stoker.probes.kit.findings import Trouble
from stoker.probes.kit.wire import Reply

LINE_LIMIT_BYTES = 256 * 1024  # aiohttp's clients give up at 64 KiB, others later; no engine needs as much for a token
DONE = "[DONE]"


class Event(NamedTuple):
    """One event; `data` None is the end, `[DONE]`."""

    at_s: float
    data: dict[str, Any] | None


def read_events(reply: Reply) -> list[Event]:
    """Returns the events of a stream; raises Trouble where it is none that OpenAI's clients understand."""
    return [Event(reply.at_s(place), _decode(line)) for place, line in _lines(reply.body) if line]


def _lines(body: bytes) -> Iterator[tuple[int, str]]:
    """Yields the data of each event and the place of its last byte."""
    place = 0
    for line in body.split(b"\n"):
        place += len(line) + 1
        if len(line) > LINE_LIMIT_BYTES:
            raise Trouble(f"a line of its stream is {len(line)} bytes long; clients give up on such lines")
        if line.startswith(b"data:"):
            yield place - 1, _text(line.removeprefix(b"data:").strip())
        elif not line.startswith((b":", b"event:", b"id:", b"retry:")) and line.strip():
            raise Trouble(f"a line of its stream is no event: {_shown(line)}")


def _text(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as problem:
        raise Trouble(f"an event of its stream is no UTF-8: {_shown(line)}") from problem


def _decode(text: str) -> dict[str, Any] | None:
    if text == DONE:
        return None
    try:
        event: dict[str, Any] = msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError as problem:
        raise Trouble(f"an event of its stream is no JSON object ({problem}): {text[:200]}") from problem
    if event.get("error"):
        raise Trouble(f"its stream carries an error: {msgspec.json.encode(event['error']).decode()[:300]}")
    return event


def _shown(line: bytes) -> str:
    return line[:200].decode(errors="replace")
