"""Reads what one request brought: its times, its tokens, what went wrong, and what it says of speculation. Pure."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from stoker.bench.counting import Counted, CountText, count_tokens
from stoker.bench.events import NoStream, Stream, read_stream
from stoker.bench.exchange import OK, Exchange
from stoker.records import RequestSeen, TokensRead

SHOWN = 160


class Answered(NamedTuple):
    """A request, what makes its count doubtful, and what its stream said."""

    seen: RequestSeen
    doubts: tuple[str, ...]
    stream: Stream


def read_request(exchange: Exchange, began_s: float, asked_tokens: int, count_text: CountText | None = None) -> Answered:
    """Returns what was seen of an exchange; `began_s` is its repeat's begin. Whatever came, it is told, never raised."""
    error = fault_of(exchange)
    stream = Stream()
    if exchange.status == OK and not exchange.encoding:
        try:
            stream = read_stream(exchange.pieces)
        except NoStream as problem:
            error = error or str(problem)
    counted = count_tokens(stream, asked_tokens, count_text)
    error = error or _fault_of_stream(exchange, stream, counted)
    return Answered(_seen(exchange, began_s, stream, counted, error), counted.doubts if counted else (), stream)


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


def _fault_of_stream(exchange: Exchange, stream: Stream, counted: Counted | None) -> str:
    if stream.error:
        return f"its stream carries an error: {_message(msgspec.json.encode({'error': stream.error}))}"
    if stream.first_s is None:
        return "it answered whole and not as a stream" if exchange.body().lstrip()[:1] == b"{" else "its stream is empty"
    if counted is None:
        return "it answered without a token"
    return "" if stream.finish or stream.is_done else "its stream ended in the middle, without a word"


def _seen(exchange: Exchange, began_s: float, stream: Stream, counted: Counted | None, error: str) -> RequestSeen:
    sent_s = exchange.sent_s
    writes = tuple(TokensRead(one.at_s - sent_s, one.tokens, one.chunks) for one in counted.writes) if counted else ()
    return RequestSeen(
        sent_at_s=sent_s - began_s,
        first_chunk_s=None if stream.first_s is None else stream.first_s - sent_s,
        ttft_s=writes[0].at_s if writes else None,
        last_token_s=writes[-1].at_s if writes else None,
        done_s=None if exchange.done_s is None else exchange.done_s - sent_s,
        prompt_tokens=(stream.usage.prompt_tokens if stream.usage else None) or exchange.job.prompt_tokens,
        cached_tokens=_cached(stream),
        output_tokens=counted.tokens if counted else None,
        first_write_tokens=writes[0].tokens if writes else None,
        chunks=sum(one.chunks for one in writes),
        counted_by=counted.counted_by if counted else "chunks",
        status=exchange.status,
        error=error,
        writes=writes,
        due_at_s=None if exchange.due_s is None else exchange.due_s - began_s,
        turn=exchange.job.turn,
        finish=stream.finish,
        is_split_known=counted.is_split_known if counted else True,
    )


def _cached(stream: Stream) -> int | None:
    """Returns how much of the prompt was known already: usage tells, or llama.cpp's timings."""
    details = stream.usage.prompt_tokens_details if stream.usage else None
    if details is not None and details.cached_tokens is not None:
        return details.cached_tokens
    return stream.timings.cache_n if stream.timings else None
