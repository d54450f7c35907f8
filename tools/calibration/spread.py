"""Finds how far off predictions are, by their traits, from the misses of models that were left out of the fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from calibration.fitting import solve

from stoker.plan.speed.prediction import spread_of

LEAST_MISS, PULL_TO_ZERO = 0.03, 2.0
LOW, HIGH = 0.1, 0.9


@dataclass(frozen=True)
class Miss:
    """The logarithm of measured by predicted, where the model was left out; `weight` as in the fit."""

    line: int
    model: str
    log_ratio: float
    traits: tuple[str, ...]
    weight: float


def find_spread(misses: Sequence[Miss]) -> tuple[dict[str, float], float, float]:
    """Returns each trait's part of the logarithm of the usual miss, and the percentiles in units of that miss."""
    names = sorted({trait for miss in misses for trait in miss.traits})
    index = {name: place for place, name in enumerate(names)}
    normal = [[0.0] * len(names) for _ in names]
    right = [0.0] * len(names)
    for miss in misses:
        places, size = [index[trait] for trait in miss.traits], math.log(abs(miss.log_ratio) + LEAST_MISS)
        for place in places:
            right[place] += miss.weight * size
            for other in places:
                normal[place][other] += miss.weight
    for name, place in index.items():
        normal[place][place] += PULL_TO_ZERO if name != "all" else 1e-6
    spread = dict(zip(names, solve(normal, right), strict=True))
    scaled = sorted((miss.log_ratio / spread_of(miss.traits, spread), miss.weight) for miss in misses)
    return spread, percentile(scaled, LOW), percentile(scaled, HIGH)


def percentile(weighted: Sequence[tuple[float, float]], share: float) -> float:
    """Returns the value below which this share of the weight lies."""
    wanted, passed = share * sum(weight for _, weight in weighted), 0.0
    for value, weight in weighted:
        passed += weight
        if passed >= wanted:
            return value
    return weighted[-1][0]
