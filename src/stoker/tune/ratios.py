"""How much faster one way is than another, and whether by more than chance. Pure.

Repeat number i of every start asks the same prompts, so that repeats are compared in pairs: what a prompt is by itself falls
out of the comparison.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from stoker.records import Band, Record, Sighting

LEVEL = 0.95
EIGHTY = 0.8
ANGLE_BITS = 60


class Ratio(Record, frozen=True):
    """A rate by another's, with its interval; None where there are too few repeats for one."""

    ratio: float
    low: float | None
    high: float | None

    @property
    def is_faster(self) -> bool:
        """Tells whether it is faster beyond doubt."""
        return self.low is not None and self.low > 1.0

    def moved(self, log: float) -> Ratio:
        """Returns it moved by a logarithm, its interval too."""
        by = math.exp(log)
        low, high = (None if one is None else one * by for one in (self.low, self.high))
        return Ratio(self.ratio * by, low, high)


def mean_log(values: Sequence[float]) -> float:
    """Returns the mean of the logarithms."""
    return sum(map(math.log, values)) / len(values)


def logs_of(sighting: Sighting) -> list[float]:
    """Returns the logarithm of the rate of each repeat, the mean over the contents."""
    return [sum(map(math.log, rates)) / len(rates) for rates in zip(*(one.rates for one in sighting.seen), strict=False)]


def rate_of(sighting: Sighting) -> float:
    """Returns the geometric mean of all its rates."""
    logs = logs_of(sighting)
    return math.exp(sum(logs) / len(logs))


def compare(a: Sighting, b: Sighting) -> Ratio:
    """Returns a's rate by b's, repeat by repeat; of what was started twice, by the mean of both starts."""
    pairs = list(zip(logs_of(a), logs_of(b), strict=False))
    middle, half = interval([one - other for one, other in pairs], LEVEL)
    if half is None:
        return Ratio(math.exp(middle), None, None)
    return Ratio(math.exp(middle), math.exp(middle - half), math.exp(middle + half))


def is_in_doubt(a: Sighting, b: Sighting, worth: float = 0.0) -> bool:
    """Tells whether a is faster than b by more than `worth` in the mean, and that may be chance."""
    found = compare(a, b)
    return found.ratio > 1 + worth and not found.is_faster


def may_be_faster(a: Sighting, b: Sighting, by: float) -> bool:
    """Tells whether a is faster than b by as much as `by`, or may be as far as is known."""
    high = compare(a, b).high
    return high is None or high > 1 + by


def together(first: Sighting, second: Sighting) -> Sighting:
    """Returns what two starts of a way gave, repeat by repeat: both were asked the same prompts."""
    seen = tuple(
        msgspec.structs.replace(
            one,
            rates=tuple(math.sqrt(a * b) for a, b in zip(one.rates, other.rates, strict=False)),
            base_step_s=math.sqrt(one.base_step_s * other.base_step_s) if one.base_step_s and other.base_step_s else None,
        )
        for one, other in zip(first.seen, second.seen, strict=True)
    )
    logs = tuple(mean_log([rate_of(one)]) for one in (first, second))
    return msgspec.structs.replace(first, seen=seen, start_logs=logs)


def start_spread(*logs: Sequence[float]) -> float:
    """Returns the standard deviation of a start, from several of each way; 0 where each was started once."""
    squares = [(one - sum(each) / len(each)) ** 2 for each in logs for one in each]
    freedom = sum(len(each) - 1 for each in logs if each)
    return math.sqrt(sum(squares) / freedom) if freedom else 0.0


def band_of(sighting: Sighting) -> Band:
    """Returns the rate with the interval that should hold it four times in five."""
    middle, half = interval(logs_of(sighting), EIGHTY)
    if half is None:
        return Band(math.exp(middle), None, None)
    return Band(math.exp(middle), math.exp(middle - half), math.exp(middle + half))


def interval(logs: Sequence[float], level: float) -> tuple[float, float | None]:
    """Returns the mean, and half the interval that holds it with this probability: None from fewer than three."""
    count = len(logs)
    middle = sum(logs) / count
    if count < 3:
        return middle, None
    spread = math.sqrt(sum((one - middle) ** 2 for one in logs) / (count - 1))
    return middle, student_t(level, count - 1) * spread / math.sqrt(count)


@lru_cache
def student_t(level: float, freedom: int) -> float:
    """Returns how many standard errors hold a mean with this probability."""
    low, high = 0.0, math.pi / 2
    for _ in range(ANGLE_BITS):
        middle = (low + high) / 2
        low, high = (middle, high) if _held_within(middle, freedom) < level else (low, middle)
    return math.sqrt(freedom) * math.tan(low)


def _held_within(angle: float, freedom: int) -> float:
    """The probability within sqrt(freedom) * tan(angle) to both sides (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    is_odd, cosine = freedom % 2, math.cos(angle)
    term, total = cosine**is_odd, 0.0
    for power in range(is_odd + 2, freedom + 1, 2):
        total += term
        term *= cosine**2 * (power - 1) / power
    share = math.sin(angle) * total
    return 2 / math.pi * (angle + share) if is_odd else share
