"""Whether a change is more than chance: permutation tests on ranks, which assume nothing of how values scatter.

If two runs measured the same, each share-out of their values (of pairs: each choice of signs) is as probable as the one that
was seen. For few values all are counted; for many, some are drawn with a seed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import log, sqrt
from random import Random
from typing import NamedTuple

MOST_COUNTED = 40  # values of both together: 10^11 share-outs, counted by their sums in a few milliseconds
DRAWS, SEED = 10_000, 1
LEVEL = 0.05
ROUNDING = 1e-9
DIGITS = 12  # of a logarithm: 2 to 3 is as far as 3 to 2, which floats do not know


class Null(NamedTuple):
    """How far b's ranks are from where they belong if nothing changed, and how probable each such distance is then."""

    seen: int
    chances: Mapping[int, float]
    is_counted: bool


def null_of(a: Sequence[float], b: Sequence[float]) -> Null:
    """Returns the rank sums of two independent samples."""
    ranks = _ranks([*a, *b])
    middle = len(b) * (len(ranks) + 1)  # ranks are doubled, so that ties have whole ones
    seen = sum(ranks[len(a) :]) - middle
    if len(ranks) > MOST_COUNTED:
        return Null(seen, _drawn(ranks, len(b), middle), is_counted=False)
    return Null(seen, _counted(ranks, len(b), middle), is_counted=True)


def are_pairs_enough(count: int, among: int) -> bool:
    """Tells whether so many pairs could tell one cell apart among so many: of few, no choice of signs is rare enough."""
    return 2.0 ** (1 - count) * among <= LEVEL


def null_of_pairs(a: Sequence[float], b: Sequence[float]) -> Null:
    """Returns the signed rank sums of pairs; a pair without a difference tells nothing and is left out."""
    changes = [log(top / bottom) for bottom, top in zip(a, b, strict=True) if top != bottom]
    ranks = _ranks([round(abs(change), DIGITS) for change in changes])
    seen = sum(rank if change > 0 else -rank for rank, change in zip(ranks, changes, strict=True))
    if len(ranks) > MOST_COUNTED:
        random = Random(SEED)
        drawn = Counter(sum(random.choice((rank, -rank)) for rank in ranks) for _ in range(DRAWS))
        return Null(seen, {each: count / DRAWS for each, count in drawn.items()}, is_counted=False)
    chances: Mapping[int, float] = {0: 1.0}
    for rank in ranks:
        chances = _sum_up((each + sign * rank, chance / 2) for each, chance in chances.items() for sign in (1, -1))
    return Null(seen, chances, is_counted=True)


def _sum_up(parts: Iterable[tuple[int, float]]) -> dict[int, float]:
    found: defaultdict[int, float] = defaultdict(float)
    for each, chance in parts:
        found[each] += chance
    return dict(found)


def _ranks(values: Sequence[float]) -> list[int]:
    """Returns each value's rank, doubled; equal values share the middle of theirs."""
    places: defaultdict[float, list[int]] = defaultdict(list)
    for place, value in enumerate(sorted(values), start=1):
        places[value].append(place)
    return [places[value][0] + places[value][-1] for value in values]


def _counted(ranks: Sequence[int], size: int, middle: int) -> dict[int, float]:
    """Counts the choices of so many ranks by their sums."""
    ways: list[Counter[int]] = [Counter({0: 1}), *(Counter() for _ in range(size))]
    for rank in ranks:
        for chosen in range(size, 0, -1):
            for each, count in ways[chosen - 1].items():
                ways[chosen][each + rank] += count
    total = sum(ways[size].values())
    return {each - middle: count / total for each, count in ways[size].items()}


def _drawn(ranks: Sequence[int], size: int, middle: int) -> dict[int, float]:
    random = Random(SEED)
    drawn = Counter(sum(random.sample(ranks, size)) - middle for _ in range(DRAWS))
    return {each: count / DRAWS for each, count in drawn.items()}


def p_of(null: Null) -> float:
    """Returns how probable a distance as large as the one seen is, to either side, if nothing changed."""
    p = sum(chance for each, chance in null.chances.items() if abs(each) >= abs(null.seen))
    return min(1.0, p if null.is_counted else (p * DRAWS + 1) / (DRAWS + 1))  # what was seen is one of the draws


def least_p(null: Null) -> float:
    """Returns the smallest p that any values of these numbers could have."""
    farthest = max(map(abs, null.chances), default=0)
    return min(1.0, sum(chance for each, chance in null.chances.items() if abs(each) == farthest))


def p_of_all(nulls: Sequence[Null]) -> float:
    """Returns p of all cells together: values are shared out within each cell, and the distances added up; drawn."""
    random, seen = Random(SEED), abs(sum(_standard(null, null.seen) for null in nulls))
    columns = [
        random.choices([_standard(null, each) for each in null.chances], list(null.chances.values()), k=DRAWS)
        for null in nulls
    ]
    hits: int = sum(abs(sum(row)) >= seen - ROUNDING for row in zip(*columns, strict=True))
    return (hits + 1) / (DRAWS + 1)


def _standard(null: Null, distance: int) -> float:
    """Returns a distance in units of what is usual, so that a cell of many repeats does not outweigh the others."""
    usual = sqrt(sum(chance * each * each for each, chance in null.chances.items()))
    return distance / usual if usual else 0.0


def holm(ps: Sequence[float]) -> list[float]:
    """Returns each p as it counts among several: the chance that any of them comes about by chance stays below it."""
    order = sorted(range(len(ps)), key=lambda place: ps[place])
    adjusted, largest = [0.0] * len(ps), 0.0
    for done, place in enumerate(order):
        largest = max(largest, min(1.0, (len(ps) - done) * ps[place]))
        adjusted[place] = largest
    return adjusted
