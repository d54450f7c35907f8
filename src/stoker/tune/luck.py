"""How much of a measured rate is likely its start's own luck, by what the other starts say of it. Pure.

Two starts of one way differ by more than repeats within either tell: the machine was hotter, or shared, or the memory lay
differently. A number of draft tokens is known from its neighbours as well, so what it was measured at and what they say are
weighed against each other (docs/decisions/0045-a-start-is-judged-by-its-neighbours.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean

from stoker.records import Seen, Sighting, Way
from stoker.tune.curve import Guess, anchors_of, guess_again, log_rate, noise_of
from stoker.tune.families import OFF, Family

# How far a start is off by itself and its minute, as the standard deviation of a logarithm. In twenty tunings beside their
# sweeps one way differed by 4.7 % in the middle between two starts, which is 0.05 of each (docs/measured/tuning.md).
START_SD = 0.04


def luck_of(families: Iterable[Family], measured: Sequence[Sighting]) -> dict[Way, float]:
    """Returns by how much, as a logarithm, ways were likely measured too fast; what nothing else tells of is left out."""
    plain = next((one for one in measured if one.way == OFF), None)
    if plain is None:
        return {}
    return {one.way: luck for family in families for one in measured if one.way in family.ways
            if (luck := _luck(one, plain, measured, family)) is not None}  # fmt: skip


def _luck(one: Sighting, plain: Sighting, measured: Iterable[Sighting], family: Family) -> float | None:
    """Returns the mean over the contents."""
    count, kind = one.way.draft_tokens or 0, family.kind or ""
    others = [(other.way.draft_tokens, other) for other in measured
              if other.way in family.ways and other.way.draft_tokens and other.way != one.way]  # fmt: skip
    most = max((tokens for tokens, _ in others), default=0)
    # Beyond what a lookup finds more tokens change nothing, so no line leads there.
    if not count or not others or (kind == "ngram" and count > most):
        return None
    starts = max(1, len(one.start_logs))
    found = []
    for place, seen in enumerate(one.seen):
        anchors = anchors_of(kind, plain.seen[place], [(tokens, other.seen[place]) for tokens, other in others])
        found.append(_luck_of_one(seen, starts, guess_again(seen, count, kind, anchors, START_SD)))
    return fmean(found)


def _luck_of_one(seen: Seen, starts: int, again: Guess) -> float:
    own_sd = math.hypot(noise_of(seen), START_SD / math.sqrt(starts))
    return (log_rate(seen) - again.mean) * own_sd**2 / (own_sd**2 + again.sd**2)
