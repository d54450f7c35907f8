"""Counts an answer's tokens, in all and of each write, from the most trustworthy thing that tells. Pure.

A write is what one read of the socket brought. The rate of decoding leaves out all tokens of the first write, so how many
they are matters as much as the sum: with four tokens in it of 32, counting one would make the rate 11 % too high.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from stoker.bench.events import Stream, Text
from stoker.records import CountedBy, TokensRead

LENGTH = "length"
CountText = Callable[[str], int | None]


class Counted(NamedTuple):
    """The tokens of an answer; `doubts` say in words where what told them contradicts itself."""

    tokens: int
    counted_by: CountedBy
    writes: tuple[TokensRead, ...]
    is_split_known: bool
    doubts: tuple[str, ...]


def count_tokens(stream: Stream, asked_tokens: int, count_text: CountText | None = None) -> Counted | None:
    """Returns the tokens of an answer; None where it has no text. `count_text` asks the server or a tokenizer."""
    if not stream.texts:
        return None
    doubts: list[str] = []
    tokens, counted_by = _total(stream, asked_tokens, count_text, doubts)
    parts, is_known = _split(stream.texts, tokens, count_text)
    return Counted(tokens, counted_by, _join_reads(stream.texts, parts), is_known, tuple(doubts))


def _total(stream: Stream, asked_tokens: int, count_text: CountText | None, doubts: list[str]) -> tuple[int, CountedBy]:
    texts = stream.texts
    told = (stream.usage.completion_tokens if stream.usage else None) or (
        stream.timings.predicted_n if stream.timings else None
    )
    if told:
        if (doubt := _doubt(told, stream.ids, len(texts), asked_tokens)) is None:
            return told, "usage"
        doubts.append(doubt)
    if stream.ids:
        return stream.ids, "token ids"
    if stream.finish == LENGTH and len(texts) <= asked_tokens:
        return asked_tokens, "length"
    counted = count_text("".join(one.text for one in texts)) if count_text else None
    return (counted, "tokenize") if counted else (len(texts), "chunks")


def _doubt(told: int, ids: int, chunks: int, asked_tokens: int) -> str | None:
    """Returns how a count contradicts what came; one chunk more than tokens is a parser's cut through one of them."""
    if ids and ids != told:
        return f"usage says {told} tokens, and {ids} token ids came"
    if told < chunks - 1:
        return f"usage says {told} tokens, and {chunks} chunks with text came"
    if told > asked_tokens:
        return f"usage says {told} tokens, and at most {asked_tokens} were asked for"
    return None


def _split(texts: Sequence[Text], tokens: int, count_text: CountText | None) -> tuple[list[int], bool]:
    """Returns each chunk's tokens, which add up to the sum, and whether they are known and not estimated."""
    told = [one.until_now for one in texts]
    if all(one is not None for one in told):
        steps = [one for one in told if one is not None]
        if steps == sorted(steps) and steps[-1] <= tokens and steps[0] > 0:
            return _differences([*steps[:-1], tokens]), True
    if tokens == len(texts):
        return [1] * tokens, True
    return _share(texts, tokens, count_text), False


def _share(texts: Sequence[Text], tokens: int, count_text: CountText | None) -> list[int]:
    """Shares the tokens out by the length of the texts; the first write's, on which most depends, by a tokenizer."""
    lengths, so_far = [], 0
    for one in texts:
        so_far += len(one.text.encode())
        lengths.append(so_far)
    steps = [max(1, round(tokens * length / so_far)) for length in lengths]
    first = [one.text for one in texts if one.at_s == texts[0].at_s]
    counted = count_text("".join(first)) if count_text else None
    if counted and counted <= tokens:
        place = len(first) - 1
        steps = [min(one, counted) if number < place else max(one, counted) for number, one in enumerate(steps)]
        steps[place] = counted
    return _differences(steps)


def _differences(steps: Sequence[int]) -> list[int]:
    return [one - before for before, one in zip((0, *steps), steps, strict=False)]


def _join_reads(texts: Sequence[Text], parts: Sequence[int]) -> tuple[TokensRead, ...]:
    """Returns what each read brought: the chunks that came at the same moment."""
    reads: list[TokensRead] = []
    for text, tokens in zip(texts, parts, strict=True):
        if reads and reads[-1].at_s == text.at_s:
            last = reads.pop()
            reads.append(TokensRead(text.at_s, (last.tokens or 0) + tokens, last.chunks + 1))
        else:
            reads.append(TokensRead(text.at_s, tokens, 1))
    return tuple(reads)
