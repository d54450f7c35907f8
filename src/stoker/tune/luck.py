"""How much of a measured rate is likely its start's own luck, by what the other starts of its kind say. Pure.

Two starts of one way differ by more than repeats within either tell: the machine was hotter, or shared, or the memory lay
differently. The tokens of a step are counted, so only its time is a start's own; and the times of several numbers of draft
tokens lie near a line, off aside, since the first token brings what drafting costs at all
(docs/decisions/0045-a-start-is-judged-by-its-neighbours.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean, linear_regression

from stoker.records import Sighting, Way
from stoker.tune.curve import length_of, log_rate
from stoker.tune.families import Family

# How far a start is off by itself and its minute, as the standard deviation of a logarithm. Between a tuning and its sweep
# one way differed by 6.7 % in the middle (docs/measured/tuning.md), a part of which all ways had in common.
START_SD = 0.04
BENT_SD = 0.03  # how far off the line a step's time is without any luck
LEAST_ON_A_LINE = 3  # two lie on a line whatever their luck
KINDS = ("draft", "eagle", "eagle3", "mtp")  # what a lookup finds ends where it ends, and more tokens change nothing


def luck_of(families: Iterable[Family], measured: Sequence[Sighting]) -> dict[Way, float]:
    """Returns by how much, as a logarithm, ways were likely measured too fast; what nothing else tells of is left out."""
    found: dict[Way, float] = {}
    for family in families:
        own = [one for one in measured if one.way in family.ways and one.way.draft_tokens]
        if family.kind in KINDS and family.axis and len(own) >= LEAST_ON_A_LINE:
            found |= {one.way: _luck(one, off) for one, off in zip(own, _off_the_line(own), strict=True)}
    return found


def _luck(one: Sighting, off: float) -> float:
    started = START_SD**2 / max(1, len(one.start_logs))
    return off * started / (started + BENT_SD**2)


def _off_the_line(own: Sequence[Sighting]) -> list[float]:
    """Returns how much less time steps took than the line through all of them says, as logarithms, by the contents' mean."""
    contents = range(len(own[0].seen))
    by_content = [_residuals([(one.way.draft_tokens or 0, _step_s(one, place)) for one in own]) for place in contents]
    return [fmean(each) for each in zip(*by_content, strict=True)]


def _step_s(one: Sighting, place: int) -> float:
    seen = one.seen[place]
    return length_of(one.way.kind or "", seen, one.way.draft_tokens or 0) / math.exp(log_rate(seen))


def _residuals(times: Sequence[tuple[int, float]]) -> list[float]:
    """Returns by how much, as a logarithm, each time is below the line through all."""
    slope, begin_s = linear_regression(*zip(*times, strict=True))
    return [math.log(max(begin_s + slope * count, time_s / 2) / time_s) for count, time_s in times]
