"""Stretches of time, and how much of it each stage has where they overlap. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from stoker.records import StageName


class Span(NamedTuple):
    """A stretch of time that belongs to a stage, and the line that says so."""

    stage: StageName
    begin_s: float
    end_s: float
    line: str
    is_reading: bool = False

    @property
    def length_s(self) -> float:
        """How long it is."""
        return self.end_s - self.begin_s


def clip(spans: Iterable[Span], begin_s: float, end_s: float) -> list[Span]:
    """Returns the spans as far as they lie between two moments."""
    bounds = ((max(span.begin_s, begin_s), min(span.end_s, end_s), span) for span in spans)
    return [span._replace(begin_s=begin, end_s=end) for begin, end, span in bounds if begin <= end]


def share_out(spans: Iterable[Span]) -> dict[StageName, float]:
    """Returns the seconds of each stage; of spans that overlap the shortest has the time, since it says more."""
    found = list(spans)
    shares: dict[StageName, float] = {span.stage: 0.0 for span in found}
    for span, seconds in _pieces(found):
        shares[span.stage] += seconds
    return shares


def covered_s(spans: Iterable[Span]) -> float:
    """Returns how long at least one of the spans lasts."""
    return sum(seconds for _, seconds in _pieces(list(spans)))


def _pieces(spans: list[Span]) -> Iterator[tuple[Span, float]]:
    """Yields each stretch between two neighbouring ends, with the shortest span over it."""
    waiting = sorted(spans, key=lambda span: span.begin_s, reverse=True)
    over: list[tuple[float, int, Span]] = []
    for left, right in pairwise(sorted({moment for span in spans for moment in (span.begin_s, span.end_s)})):
        while waiting and waiting[-1].begin_s <= left:
            span = waiting.pop()
            heapq.heappush(over, (span.length_s, len(waiting), span))
        while over and over[0][2].end_s <= left:
            heapq.heappop(over)
        if over:
            yield over[0][2], right - left
