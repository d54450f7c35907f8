"""Finds the factors: Gauss-Newton steps in their logarithms, towards what is expected where the data say little.

Outliers lose weight as in Student's t distribution, so that one wrong figure cannot bend a factor. There is no chance in it:
the same data give the same fit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from calibration.observations import FIRST_RATES, Observation
from stoker.plan.speed.cost import PRIORS, USUAL_SPREAD, cost_s
from stoker.plan.speed.speculation import USUAL_FIRST_RATE

USUAL_MISS = 0.12  # of a rate, where all that matters is known
STEPS, LONGEST_STEP, ENOUGH = 12, 0.7, 4e-3
RATE_SPREAD = 0.1
Matrix = list[list[float]]
Learned = tuple[dict[str, float], dict[str, float]]


def learn(observations: Sequence[Observation], start: dict[str, float] | None = None) -> Learned:
    """Returns factors, and the usual first rates of drafts, that explain the observations; `start` only saves time."""
    observations = [one for one in observations if one.weight]
    rates = {sort: _nearest(usual) for sort, usual in USUAL_FIRST_RATE.items()}
    factors = find_factors(observations, rates, start)
    rates = {sort: _best_rate(sort, observations, factors) for sort in rates}
    return find_factors(observations, rates, factors), rates


def _nearest(usual: float) -> float:
    return min(FIRST_RATES, key=lambda rate: abs(rate - usual))


def _best_rate(sort: str, observations: Sequence[Observation], factors: dict[str, float]) -> float:
    ours = [one for one in observations if one.sort == sort]

    def misfit(rate: float) -> float:
        away = ((rate - USUAL_FIRST_RATE[sort]) / RATE_SPREAD) ** 2
        return away + sum(one.weight * math.log1p(_miss(one, factors, {sort: rate}) ** 2) for one in ours)

    return min(FIRST_RATES, key=lambda rate: round(misfit(rate), 9))


def _miss(one: Observation, factors: dict[str, float], rates: dict[str, float]) -> float:
    return math.log(cost_s(one.terms(rates), factors) / one.seconds) / USUAL_MISS


def find_factors(
    observations: Sequence[Observation], rates: dict[str, float], start: dict[str, float] | None = None
) -> dict[str, float]:
    """Returns the value of every factor that an observation has."""
    work = [one.terms(rates) for one in observations]
    names = sorted({name for terms in work for factors in terms for name in factors})
    index = {name: place for place, name in enumerate(names)}
    usual = [PRIORS.get(name, (1.0, USUAL_SPREAD)) for name in names]
    listed = [[(amount, [index[name] for name in factors]) for factors, amount in terms.items()] for terms in work]
    moved = [math.log(start[name] / usual[place][0]) if start else 0.0 for name, place in index.items()]
    for _ in range(STEPS):
        values = [mean * math.exp(by) for (mean, _), by in zip(usual, moved, strict=True)]
        step = _next_step(observations, listed, values, moved, [spread for _, spread in usual])
        longest = max(abs(by) for by in step)
        moved = [by + more * min(1.0, LONGEST_STEP / max(longest, ENOUGH)) for by, more in zip(moved, step, strict=True)]
        if longest < ENOUGH:
            break
    return {name: usual[place][0] * math.exp(moved[place]) for name, place in index.items()}


def _next_step(
    observations: Sequence[Observation], listed: list[list[tuple[float, list[int]]]], values: list[float],
    moved: list[float], spreads: list[float],
) -> list[float]:  # fmt: skip
    count = len(values)
    normal: Matrix = [[0.0] * count for _ in range(count)]
    pull = [0.0] * count
    for one, terms in zip(observations, listed, strict=True):
        slopes, miss = _slopes(terms, values, one.seconds)
        weight = one.weight / (USUAL_MISS**2 * (1 + (miss / USUAL_MISS) ** 2))
        for place, slope in slopes:
            pull[place] -= weight * slope * miss
            row, share = normal[place], weight * slope
            for other, other_slope in slopes:
                row[other] += share * other_slope
    for place, spread in enumerate(spreads):
        normal[place][place] += spread**-2
        pull[place] -= moved[place] * spread**-2
    return solve(normal, pull)


def _slopes(
    terms: list[tuple[float, list[int]]], values: list[float], seconds: float
) -> tuple[list[tuple[int, float]], float]:
    total, shares = 0.0, dict[int, float]()
    for amount, places in terms:
        cost = amount
        for place in places:
            cost *= values[place]
        total += cost
        for place in places:
            shares[place] = shares.get(place, 0.0) + cost
    return [(place, share / total) for place, share in shares.items()], math.log(total / seconds)


def solve(matrix: Matrix, right: list[float]) -> list[float]:
    """Returns the solution of linear equations, by elimination with the largest pivot."""
    count = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for place in range(count):
        best = max(range(place, count), key=lambda row, place=place: abs(rows[row][place]))  # type: ignore[misc]
        rows[place], rows[best] = rows[best], rows[place]
        for below in range(place + 1, count):
            share = rows[below][place] / rows[place][place]
            if share:
                rows[below] = [a - share * b for a, b in zip(rows[below], rows[place], strict=True)]
    found = [0.0] * count
    for place in reversed(range(count)):
        known = sum(rows[place][other] * found[other] for other in range(place + 1, count))
        found[place] = (rows[place][count] - known) / rows[place][place]
    return found
