"""Which ways need no start, since they would lose even if every draft token that is not known were right. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from stoker.records import Seen, Sighting, Way
from stoker.tune.families import OFF, Family
from stoker.tune.ratios import mean_log

# Another token is taken to cost at least this much of what those before it cost in the mean, what drafting costs included.
# In 2,700 made machines that is below the truth often enough: 21 choices were over 3 % behind with it, 22 without (0021).
LEAST_COST = 0.5


def cannot_win(family: Family, measured: Sequence[Sighting], goal: float) -> frozenset[Way]:
    """Returns the ways with more draft tokens than were measured of a family that cannot reach `goal`, a log of tokens/s."""
    plain = next((one for one in measured if one.way == OFF), None)
    own = [one for one in measured if one.way in family.ways and one.way.draft_tokens]
    if plain is None or not own:
        return frozenset()
    longest = max(own, key=lambda one: one.way.draft_tokens or 0)
    if family.kind == "ngram" and any(seen.lengths_by != "positions" for seen in longest.seen):
        return frozenset()  # where it finds much, what lies beyond is right more often than the mean tells
    tokens, both = longest.way.draft_tokens or 1, list(zip(plain.seen, longest.seen, strict=True))
    more = [(way, count) for way in family.ways if (count := way.draft_tokens or 0) > tokens]
    return frozenset(way for way, count in more if fmean(best_case(count, *pair, tokens) for pair in both) < goal)


def best_case(count: int, plain: Seen, seen: Seen, tokens: int) -> float:
    """Returns the logarithm of the highest rate that `count` draft tokens can have, where `tokens` were measured.

    As if those beyond were right whenever all before them are; infinite where nothing was counted.
    """
    if len(seen.lengths) < tokens:
        return math.inf
    length, before = seen.lengths[tokens - 1], seen.lengths[tokens - 2] if tokens > 1 else 1.0
    step_s, plain_s, more = length / math.exp(mean_log(seen.rates)), 1 / math.exp(mean_log(plain.rates)), count - tokens
    each_s = LEAST_COST * max(0.0, step_s - plain_s) / tokens
    return math.log((length + (length - before) * more) / (step_s + each_s * more))
