"""Reads a chat's stream of server-sent events, each with the time at which it had come; any line ending will do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from stoker.bench.exchange import Piece

DONE = b"[DONE]"


class Delta(msgspec.Struct):
    """What an event adds to an answer; the train of thought comes under one of two names."""

    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[Any] | None = None

    def text(self) -> str:
        """Returns all that it adds; calls of tools are written by the model too."""
        said = (self.content or "") + (self.reasoning_content or self.reasoning or "")
        return said + msgspec.json.encode(self.tool_calls).decode() if self.tool_calls else said


class Choice(msgspec.Struct):
    """One answer's part of an event; `token_ids` where the server was asked for them."""

    index: int = 0
    delta: Delta | None = None
    finish_reason: str | None = None
    token_ids: list[int] | None = None


class PromptDetails(msgspec.Struct):
    """What was already known of a prompt."""

    cached_tokens: int | None = None


class Usage(msgspec.Struct):
    """What the server counted, by the end or until this event."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: PromptDetails | None = None


class Timings(msgspec.Struct):
    """What llama.cpp counted, by the end or until this event."""

    prompt_n: int | None = None
    cache_n: int | None = None
    predicted_n: int | None = None
    draft_n: int | None = None
    draft_n_accepted: int | None = None


class Chunk(msgspec.Struct):
    """One event of a chat's stream; `metrics` is vLLM's, `sglext` SGLang's."""

    choices: list[Choice] = []
    usage: Usage | None = None
    timings: Timings | None = None
    metrics: dict[str, Any] | None = None
    sglext: dict[str, Any] | None = None
    error: Any = None
    model: str | None = None


class Event(NamedTuple):
    """An event and when the last of it had come; `chunk` None is the end, `[DONE]`."""

    at_s: float
    chunk: Chunk | None


class NoStream(Exception):
    """What came is no stream of a chat; the words say what it is."""


_DECODER = msgspec.json.Decoder(Chunk)


def read_events(pieces: Iterable[Piece]) -> list[Event]:
    """Returns the events of a stream; raises NoStream where one is none of a chat's."""
    return [Event(at_s, _decode(data)) for at_s, data in _split(pieces)]


def _split(pieces: Iterable[Piece]) -> Iterator[tuple[float, bytes]]:
    """Yields each event's data, and when its last line had come; an event of several lines is joined."""
    rest, lines, at_s = b"", [], 0.0
    for at_s, data in pieces:
        for line in (rest + data).splitlines(keepends=True):
            if not line.endswith((b"\n", b"\r")):
                rest = line
                break
            rest = b""
            if (field := line.strip()).startswith(b"data:"):
                lines.append(field[5:].lstrip())
                came_s = at_s
            elif not field and lines:
                yield came_s, b"\n".join(lines)
                lines = []
    if rest.startswith(b"data:"):
        lines.append(rest[5:].strip())
        came_s = at_s
    if lines:
        yield came_s, b"\n".join(lines)


def _decode(data: bytes) -> Chunk | None:
    if data == DONE:
        return None
    try:
        return _DECODER.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
        shown = data[:120].decode(errors="replace")
        raise NoStream(f"an event of its stream is none of a chat ({problem}): {shown}") from problem
