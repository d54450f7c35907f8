"""Reads a chat's stream of server-sent events, each with the time at which it had come; any line ending will do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from stoker.bench.exchange import Piece

DONE, BEGIN, END = b"[DONE]", b"data: ", b"\n\n"


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


class Text(NamedTuple):
    """A chunk with text, when it had come, and how many tokens there were with it, where the server tells."""

    at_s: float
    text: str
    until_now: int | None


class NoStream(Exception):
    """What came is no stream of a chat; the words say what it is."""


class Stream:
    """What a stream said, in one pass: `last` are the chunks that sum it up, `ids` how many token ids came.

    `first_s` is when a chunk of any kind came, None where none did; `is_done` tells whether it said that it is all.
    """

    def __init__(self) -> None:
        self.first_s: float | None = None
        self.texts: list[Text] = []
        self.ids = 0
        self.usage: Usage | None = None
        self.timings: Timings | None = None
        self.finish: str | None = None
        self.error: Any = None
        self.is_done = False
        self.last: list[Chunk] = []

    def add(self, at_s: float, chunk: Chunk | None) -> None:
        """Takes an event; None is the end."""
        if self.first_s is None:
            self.first_s = at_s
        if chunk is None:
            self.is_done = True
            return
        self.usage = chunk.usage or self.usage
        self.timings = chunk.timings or self.timings
        self.error = self.error or chunk.error
        if chunk.metrics or chunk.sglext or chunk.timings:
            self.last = [*self.last[-1:], chunk]
        for choice in chunk.choices:
            if not choice.index:
                self._add_choice(at_s, choice, chunk)

    def _add_choice(self, at_s: float, choice: Choice, chunk: Chunk) -> None:
        self.finish = choice.finish_reason or self.finish
        if choice.token_ids:
            self.ids += len(choice.token_ids)
        if choice.delta is not None and (text := choice.delta.text()):
            told = chunk.usage.completion_tokens if chunk.usage else chunk.timings.predicted_n if chunk.timings else None
            self.texts.append(Text(at_s, text, told if told is not None else self.ids or None))


_DECODER = msgspec.json.Decoder(Chunk)


def read_stream(pieces: Iterable[Piece]) -> Stream:
    """Returns what a stream said; raises NoStream where an event is none of a chat's."""
    stream = Stream()
    for at_s, data in _split(pieces):
        stream.add(at_s, None if data == DONE else _decode(data))
    return stream


def _split(pieces: Iterable[Piece]) -> Iterator[tuple[float, bytes]]:
    """Yields each event's data, and when its last line had come; an event of several lines is joined."""
    rest, at_s, came_s = b"", 0.0, 0.0
    lines: list[bytes] = []
    for at_s, data in pieces:
        if data.startswith(BEGIN) and data.endswith(END) and data.count(b"\n") == 2 and not rest and not lines:
            yield at_s, data[len(BEGIN) : -len(END)]  # as nearly all of them come
            continue
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


def _decode(data: bytes) -> Chunk:
    try:
        return _DECODER.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
        shown = data[:120].decode(errors="replace")
        raise NoStream(f"an event of its stream is none of a chat ({problem}): {shown}") from problem
