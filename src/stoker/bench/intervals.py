"""Medians, and how sure one can be of them: the bootstrap's own answer, worked out instead of drawn. Pure.

Drawing n values out of n with replacement, the median of the draw is at most the k-th smallest value where at least half
of the draws are among the k smallest: a binomial probability. So the interval needs no random numbers, and is the same every
time.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, sqrt

LEVEL = 0.95
LEAST_VALUES = 3  # fewer say nothing about how far they scatter
EXACT_UP_TO = 200  # beyond, the binomial is the normal curve for all that can be measured
NORMAL = 1.96  # its quantile at LEVEL


def median_of(values: Sequence[float]) -> float:
    """Returns the median; `statistics` has one too, and takes as long to import as a short measurement takes to start."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def spread_of(values: Sequence[float]) -> float | None:
    """Returns the distance between the quartiles; None where there are too few values."""
    if len(values) < LEAST_VALUES:
        return None
    ordered = sorted(values)
    return _at(ordered, 0.75) - _at(ordered, 0.25)


def _at(ordered: Sequence[float], share: float) -> float:
    """Returns the value at a share of the way from the smallest to the largest, between two where it falls there."""
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def interval_of(values: Sequence[float]) -> tuple[float, float] | None:
    """Returns the bootstrap interval of the median (percentile method); None where there are too few values for one."""
    if len(values) < LEAST_VALUES:
        return None
    ordered = sorted(values)
    low = _lowest_place(len(ordered))
    return ordered[low], ordered[len(ordered) - 1 - low]


def _lowest_place(count: int) -> int:
    """Returns the place of the smallest value that the medians of half of (1 - LEVEL) of all draws do not exceed."""
    if count > EXACT_UP_TO:
        return max(0, int(count / 2 - NORMAL * sqrt(count) / 2))
    return next(place for place in range(count) if _share_at_most(count, (place + 1) / count) >= (1 - LEVEL) / 2)


def _share_at_most(draws: int, share: float) -> float:
    """Returns how probable it is that the (lower) median of so many draws is among the smallest `share` of all values."""
    needed = (draws + 1) // 2
    return sum(comb(draws, hits) * share**hits * (1 - share) ** (draws - hits) for hits in range(needed, draws + 1))


def is_as_narrow_as(values: Sequence[float], precision: float) -> bool:
    """Tells whether the interval's width is at most this share of the median."""
    found = interval_of(values)
    return found is not None and found[1] - found[0] <= precision * abs(median_of(values))
