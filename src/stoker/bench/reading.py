"""Reads what one request brought: its times, its tokens, what went wrong, and what it says of speculation. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from stoker.bench.counting import Counted, CountText, count_tokens
from stoker.bench.events import Chunk, Event, NoStream, read_events
from stoker.bench.exchange import OK, Exchange
from stoker.records import RequestSeen, TokensRead

SHOWN = 160


class Answered(NamedTuple):
    """A request, what makes its count doubtful, and the events that tell of speculation and of the answer."""

    seen: RequestSeen
    doubts: tuple[str, ...]
    events: tuple[Event, ...]


def read_request(exchange: Exchange, began_s: float, asked_tokens: int, count_text: CountText | None = None) -> Answered:
    """Returns what was seen of an exchange; `began_s` is its repeat's begin. Whatever came, it is told, never raised."""
    error = fault_of(exchange)
    events: list[Event] = []
    if exchange.status == OK and not exchange.encoding:
        try:
            events = read_events(exchange.pieces)
        except NoStream as problem:
            error = error or str(problem)
    counted = count_tokens(events, asked_tokens, count_text)
    error = error or _fault_of_stream(exchange, events, counted)
    return Answered(_seen(exchange, began_s, events, counted, error), counted.doubts if counted else (), tuple(events))


def fault_of(exchange: Exchange) -> str:
    """Returns what went wrong before any stream; empty where nothing did."""
    if exchange.problem:
        return exchange.problem
    if exchange.status != OK:
        return f"HTTP {exchange.status}: {_message(exchange.body())}"
    if exchange.encoding not in ("", "identity"):
        return (
            f"it compressed its answer ({exchange.encoding}), which was not asked for, so nobody can tell when tokens came"
        )
    return ""


def _message(body: bytes) -> str:
    """Returns an error's words, from any of the shapes in which servers put them."""
    try:
        said: Any = msgspec.json.decode(body)
        for name in ("error", "message", "detail"):
            said = said.get(name, said) if isinstance(said, dict) else said
    except (msgspec.MsgspecError, UnicodeDecodeError):
        said = body.decode(errors="replace")
    text = said if isinstance(said, str) else msgspec.json.encode(said).decode()
    return " ".join(text.split())[:SHOWN] or "(no words)"


def _fault_of_stream(exchange: Exchange, events: Sequence[Event], counted: Counted | None) -> str:
    chunks = [event.chunk for event in events if event.chunk is not None]
    if error := next((chunk.error for chunk in chunks if chunk.error), None):
        return f"its stream carries an error: {_message(msgspec.json.encode({'error': error}))}"
    if not events:
        return "it answered whole and not as a stream" if exchange.body().lstrip()[:1] == b"{" else "its stream is empty"
    if counted is None:
        return "it answered without a token"
    finished = any(choice.finish_reason for chunk in chunks for choice in chunk.choices)
    is_done = any(event.chunk is None for event in events)
    return "" if finished or is_done else "its stream ended in the middle, without a word"


def _seen(exchange: Exchange, began_s: float, events: Sequence[Event], counted: Counted | None, error: str) -> RequestSeen:
    sent_s = exchange.sent_s
    chunks = [event.chunk for event in events if event.chunk is not None]
    writes = tuple(TokensRead(one.at_s - sent_s, one.tokens, one.chunks) for one in counted.writes) if counted else ()
    usage = next((chunk.usage for chunk in reversed(chunks) if chunk.usage), None)
    return RequestSeen(
        sent_at_s=sent_s - began_s,
        first_chunk_s=events[0].at_s - sent_s if events else None,
        ttft_s=writes[0].at_s if writes else None,
        last_token_s=writes[-1].at_s if writes else None,
        done_s=None if exchange.done_s is None else exchange.done_s - sent_s,
        prompt_tokens=usage.prompt_tokens if usage else None,
        cached_tokens=_cached(chunks),
        output_tokens=counted.tokens if counted else None,
        first_write_tokens=writes[0].tokens if writes else None,
        chunks=sum(one.chunks for one in writes),
        counted_by=counted.counted_by if counted else "chunks",
        status=exchange.status,
        error=error,
        writes=writes,
        due_at_s=None if exchange.due_s is None else exchange.due_s - began_s,
        turn=exchange.job.turn,
        finish=next((one.finish_reason for chunk in chunks for one in chunk.choices if one.finish_reason), None),
        is_split_known=counted.is_split_known if counted else True,
    )


def _cached(chunks: Sequence[Chunk]) -> int | None:
    """Returns how much of the prompt was known already: usage tells, or llama.cpp's timings."""
    for chunk in reversed(chunks):
        if chunk.usage and chunk.usage.prompt_tokens_details and chunk.usage.prompt_tokens_details.cached_tokens is not None:
            return chunk.usage.prompt_tokens_details.cached_tokens
        if chunk.timings and chunk.timings.cache_n is not None:
            return chunk.timings.cache_n
    return None
