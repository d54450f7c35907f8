"""How large a change is: the ratio of medians, with the interval that the bootstrap gives for it.

The bootstrap's answer is worked out, not drawn, as in `bench/intervals.py`: how probable each value is as the median of a
draw is a matter of binomials, so the ratio of two medians is a table of pairs. Only over many cells is it drawn (seeded).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from math import comb, exp, log
from random import Random
from typing import NamedTuple

from stoker.bench.intervals import LEAST_VALUES, LEVEL, median_of

Chance = tuple[float, float]  # a value and how probable it is
NEGLIGIBLE = 1e-9
MOST_EXACT = 300  # binomials of more are beyond floats; then every so many values stand for the rest
DRAWS, SEED = 4000, 1


class Size(NamedTuple):
    """A ratio's interval at LEVEL."""

    low: float
    high: float


def chances_of_median(values: Sequence[float]) -> list[Chance]:
    """Returns how probable each value is as the median of as many values, drawn of these with replacement."""
    ordered = sorted(values)
    if len(ordered) > MOST_EXACT:
        step = len(ordered) / MOST_EXACT
        ordered = [ordered[int(place * step)] for place in range(MOST_EXACT)]
    count = len(ordered)
    # Of an even number the lower and the upper middle count half each.
    needs = sorted({(count + 1) // 2, count // 2 + 1})
    at_most = [sum(_at_least(count, (place + 1) / count, need) for need in needs) / len(needs) for place in range(count)]
    each = [after - before for before, after in zip([0.0, *at_most], at_most, strict=False)]
    return [(value, chance) for value, chance in zip(ordered, each, strict=True) if chance > NEGLIGIBLE]


def _at_least(draws: int, share: float, needed: int) -> float:
    return sum(comb(draws, hits) * share**hits * (1 - share) ** (draws - hits) for hits in range(needed, draws + 1))


def ratio_of(a: Sequence[float], b: Sequence[float]) -> Size | None:
    """Returns the interval of median(b) / median(a); None where either has too few values."""
    if min(len(a), len(b)) < LEAST_VALUES or min(a) <= 0:
        return None
    return _interval(_ratios(chances_of_median(a), chances_of_median(b)))


def _ratios(a: Sequence[Chance], b: Sequence[Chance]) -> list[Chance]:
    return sorted((top / bottom, one * other) for bottom, one in a for top, other in b)


def ratio_of_pairs(a: Sequence[float], b: Sequence[float]) -> Size | None:
    """Returns the interval of the median of b / a, pair by pair."""
    if len(a) < LEAST_VALUES or min(a) <= 0:
        return None
    return _interval(sorted(chances_of_median([top / bottom for bottom, top in zip(a, b, strict=True)])))


def _interval(chances: Sequence[Chance]) -> Size:
    """Returns the values between which LEVEL of all draws lie."""
    outside, total = (1 - LEVEL) / 2, sum(chance for _, chance in chances)
    sums = list(accumulate(chance for _, chance in chances))
    low = bisect_left(sums, outside * total)
    high = min(bisect_left(sums, (1 - outside) * total), len(chances) - 1)
    return Size(chances[low][0], chances[high][0])


def ratio_of_all(cells: Sequence[tuple[Sequence[float], Sequence[float]]]) -> tuple[float, Size]:
    """Returns the geometric mean of b / a over cells, with its interval, drawn with a seed; each has values enough."""
    random = Random(SEED)
    columns = [_draw(random, chances_of_median(side), sign) for a, b in cells for side, sign in ((a, -1), (b, 1))]
    drawn = sorted(sum(row) / len(cells) for row in zip(*columns, strict=True))
    interval = _interval([(exp(each), 1 / DRAWS) for each in drawn])
    return exp(sum(log(median_of(b) / median_of(a)) for a, b in cells) / len(cells)), interval


def _draw(random: Random, chances: Sequence[Chance], sign: int) -> list[float]:
    """Returns logarithms of medians."""
    return random.choices([sign * log(value) for value, _ in chances], [chance for _, chance in chances], k=DRAWS)
