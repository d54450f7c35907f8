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
# Of a lookup the time that drafting adds to a step, and what it adds to the step's tokens, grow by a power of the number of
# tokens, since many lookups find fewer: in the middle of 36 pairs of 22 tunings of llama.cpp's, most within 0.1 of it. Those
# ten that are kept say 0.70 and 0.39 (`python -m benchmarks.tuning_replay`).
LOOKUP_TIME, LOOKUP_GAIN, LOOKUP_SD = 0.62, 0.37, 0.1


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
    share = _share(kind, count, below.draft_tokens, above.draft_tokens)
    length, lengths_sd = _length(kind, _source(anchors, count), count)
    step_s = _step_s(share, below, above)
    added = _added_by_any(kind, count, anchors, step_s) / 2  # halfway, and off by as much to either side
    sd = math.hypot(_between_sd(share, below, above), added, lengths_sd, _noise(below), _noise(above))
    return Guess(math.log(length / step_s) - added, sd)


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


def _length(kind: str, source: Anchor, count: int) -> tuple[float, float]:
    """Returns the tokens of a step, and how far off they may be, as the standard deviation of a logarithm."""
    seen = source.seen
    is_counted = count <= len(seen.lengths)
    if kind == "ngram" and seen.lengths and not (is_counted and seen.lengths_by == "positions"):
        return _length_of_lookup(source, count)
    length = seen.lengths[count - 1] if is_counted else length_of(kind, seen, count)
    return length, LENGTHS_SD[seen.lengths_by if is_counted else "usual"] * _apart(count, source.draft_tokens)


def _length_of_lookup(source: Anchor, count: int) -> tuple[float, float]:
    """Returns the same by a power of what the measured number of tokens gains."""
    further = count / source.draft_tokens
    length = 1.0 + (source.length - 1.0) * further**LOOKUP_GAIN
    return length, LOOKUP_SD * abs(math.log(further)) * (length - 1.0) / length


def length_of(kind: str, seen: Seen, count: int) -> float:
    """Returns the tokens of a step: as counted; beyond what was counted, or without counters, as is usual."""
    if count == 0:
        return 1.0
    if seen.lengths:
        return seen.lengths[min(count, len(seen.lengths)) - 1]
    return expected_length(falling_rates(USUAL_FIRST_RATE[sort_of(kind) or "draft"], count))


def _share(kind: str, count: int, below: int, above: int) -> float:
    """Returns how far along the way from one number to the other a number is, in time; over 1 beyond both."""
    power = LOOKUP_TIME if kind == "ngram" else 1.0
    return float((count**power - below**power) / (above**power - below**power))


def _step_s(share: float, below: Anchor, above: Anchor) -> float:
    return max(min(below.step_s, above.step_s), below.step_s + share * (above.step_s - below.step_s))


def _added_by_any(kind: str, count: int, anchors: Sequence[Anchor], step_s: float) -> float:
    """Returns by how much a step with fewer drafts than any measured may take longer than `step_s`, as a logarithm.

    The line through two measured numbers need not begin at a step without drafts: vLLM's did so in none of ten kept rows,
    nor SGLang's and vLLM's on a GPU (`python -m benchmarks.tuning_replay`, docs/measured/gpu.md). Where it does, this is 0.
    """
    if kind == "ngram" or len(anchors) < 3 or count >= anchors[1].draft_tokens:
        return 0.0
    first, second = anchors[1:3]
    each_s = (second.step_s - first.step_s) / (second.draft_tokens - first.draft_tokens)
    most_s = min(first.step_s, first.step_s - each_s * (first.draft_tokens - count))
    return max(0.0, math.log(max(most_s, step_s) / step_s))


def _between_sd(share: float, below: Anchor, above: Anchor) -> float:
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
