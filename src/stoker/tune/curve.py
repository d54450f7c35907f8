"""The rate with every number of draft tokens, from a start or two of a family and one without drafts. Pure.

A step with n draft tokens gives a length that the counters of one start with many tell, and takes a time between those of
its measured neighbours: drafting and verifying another token costs about as much as the one before it, so it goes straight
from one to the other. Each further start pins the curve where it was made. Why no fitted model of the machine says how the
time goes: docs/decisions/0021-tuning-by-one-start-with-many-draft-tokens.md.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence

from stoker.plan.speed.speculation import USUAL_FIRST_RATE, expected_length, falling_rates, sort_of
from stoker.records import Band, LengthsBy, Record, Seen
from stoker.tune.ratios import mean_log

EIGHTY = 1.2816  # standard deviations to either side that hold four of five
# How far off a time halfway between two measured ones may be, as a share of the way from one to the other, in logarithms (a
# standard deviation): those of the published sweep of Gemma 4 26B-A4B are off by 0.03 to 0.14 of it, by 0.08 in the mean.
BETWEEN = 0.1
# How far off the lengths may be that come from a mean, and those that come from nothing, as the standard deviation of a log.
LENGTHS_SD: dict[LengthsBy, float] = {"positions": 0.0, "mean": 0.06, "usual": 0.25}


class Guess(Record, frozen=True):
    """A rate that is not measured: the mean of its logarithm, and its standard deviation."""

    mean: float
    sd: float

    @property
    def band(self) -> Band:
        """As people read it."""
        low, high = self.mean - EIGHTY * self.sd, self.mean + EIGHTY * self.sd
        return Band(math.exp(self.mean), math.exp(low), math.exp(high))


class Anchor(Record, frozen=True):
    """What was measured with a number of draft tokens: the tokens of a step, and the seconds that it took."""

    draft_tokens: int
    length: float
    step_s: float
    seen: Seen


def guess_rate(count: int, kind: str, plain: Seen, family: Sequence[tuple[int, Seen]]) -> Guess:
    """Returns the rate to expect with `count` draft tokens; `family` is what was measured of others, at least one."""
    anchors = _anchors(kind, plain, family)
    places = [one.draft_tokens for one in anchors]
    place = min(max(1, bisect_left(places, count)), len(anchors) - 1)
    below, above = anchors[place - 1], anchors[place]
    step_s = _step_s(count, below, above)
    source = _source(anchors, count)
    length, by = _length(kind, source, count)
    lengths_sd = LENGTHS_SD[by] * _apart(count, source.draft_tokens)
    sd = math.hypot(_between_sd(count, below, above), lengths_sd, _noise(below), _noise(above))
    mean = math.log(length / step_s)
    if kind == "ngram" and count > above.draft_tokens:
        return _beyond(mean, sd, log_rate(above.seen))
    return Guess(mean, sd)


def _beyond(mean: float, sd: float, measured: float) -> Guess:
    """Returns what more tokens of a lookup give: what it finds may end before them, and then they change nothing.

    On a straight line from 8 tokens, 16 were guessed at 0.57 to 0.84 of their rate in all five tunings that came to it.
    """
    apart = (measured - mean) / 2
    return Guess(mean + apart, math.hypot(sd, apart))


def _anchors(kind: str, plain: Seen, family: Sequence[tuple[int, Seen]]) -> list[Anchor]:
    drafted = [Anchor(count, length, length / _rate(seen), seen) for count, seen in sorted(family, key=lambda one: one[0])
               for length in (length_of(kind, seen, count),)]  # fmt: skip
    return [Anchor(0, 1.0, 1.0 / _rate(plain), plain), *drafted]


def log_rate(seen: Seen) -> float:
    """Returns the mean logarithm of its rates."""
    return mean_log(seen.rates)


def _rate(seen: Seen) -> float:
    return math.exp(log_rate(seen))


def _source(anchors: Sequence[Anchor], count: int) -> Anchor:
    """Returns the measured way that tells of this many tokens: the next one with more, else the one with most."""
    return next((one for one in anchors[1:] if one.draft_tokens >= count), anchors[-1])


def _length(kind: str, source: Anchor, count: int) -> tuple[float, LengthsBy]:
    if count <= len(source.seen.lengths):
        return source.seen.lengths[count - 1], source.seen.lengths_by
    return length_of(kind, source.seen, count), "usual"


def length_of(kind: str, seen: Seen, count: int) -> float:
    """Returns the tokens of a step: as counted; beyond what was counted, or without counters, as is usual."""
    if count == 0:
        return 1.0
    if seen.lengths:
        return seen.lengths[min(count, len(seen.lengths)) - 1]
    return expected_length(falling_rates(USUAL_FIRST_RATE[sort_of(kind) or "draft"], count))


def _step_s(count: int, below: Anchor, above: Anchor) -> float:
    share = (count - below.draft_tokens) / (above.draft_tokens - below.draft_tokens)
    return max(min(below.step_s, above.step_s), below.step_s + share * (above.step_s - below.step_s))


def _between_sd(count: int, below: Anchor, above: Anchor) -> float:
    gap = above.draft_tokens - below.draft_tokens
    share = (count - below.draft_tokens) / gap
    away = min(share, abs(1.0 - share)) * 2  # 1 halfway, and beyond the last one as much as it is away
    return BETWEEN * away * abs(math.log(above.step_s / below.step_s))


def _apart(count: int, measured: int) -> float:
    return abs(measured - count) / measured


def _noise(anchor: Anchor) -> float:
    """Returns how far off the mean of its rates may be by chance."""
    logs = [math.log(rate) for rate in anchor.seen.rates]
    if len(logs) < 2:  # nobody knows, so it is taken to be a tenth
        return 0.1
    middle = sum(logs) / len(logs)
    return math.sqrt(sum((one - middle) ** 2 for one in logs) / (len(logs) - 1) / len(logs))
