"""Finds how far off predictions are, by their traits, from the misses of models that were left out of the fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from calibration.fitting import solve
from stoker.plan.speed.prediction import kind_of, spread_of

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


@dataclass(frozen=True)
class Spread:
    """How far off predictions are: each trait's part of the usual miss, and the percentiles in units of that miss."""

    parts: dict[str, float]
    percentiles: dict[str, tuple[float, float]]

    def interval(self, miss: Miss) -> tuple[float, float]:
        """Returns the logarithms of the interval's ends by the prediction."""
        low, high = self.percentiles[kind_of(miss.traits)]
        width = spread_of(miss.traits, self.parts)
        return low * width, high * width


def find_spread(misses: Sequence[Miss]) -> Spread:
    """Returns the spread; each model's misses are measured by what the other models' say, as a new model's would be."""
    misses = [miss for miss in misses if miss.weight]
    scaled: dict[str, list[tuple[float, float]]] = {}
    for model in sorted({miss.model for miss in misses}):
        parts = _find_parts([miss for miss in misses if miss.model != model])
        for miss in misses:
            if miss.model == model:
                pair = (miss.log_ratio / spread_of(miss.traits, parts), miss.weight)
                scaled.setdefault(kind_of(miss.traits), []).append(pair)
    ends = {kind: (percentile(sorted(pairs), LOW), percentile(sorted(pairs), HIGH)) for kind, pairs in scaled.items()}
    return Spread(_find_parts(misses), ends)


def _find_parts(misses: Sequence[Miss]) -> dict[str, float]:
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
    return dict(zip(names, solve(normal, right), strict=True))


def percentile(weighted: Sequence[tuple[float, float]], share: float) -> float:
    """Returns the value below which this share of the weight lies."""
    wanted, passed = share * sum(weight for _, weight in weighted), 0.0
    for value, weight in weighted:
        passed += weight
        if passed >= wanted:
            return value
    return weighted[-1][0]
