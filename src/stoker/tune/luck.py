"""How much of a measured rate is likely its start's own luck, by what the other starts of its kind say. Pure.

Two starts of one way differ by more than repeats within either tell: the machine was hotter, or shared, or the memory lay
differently. The tokens of a step are counted, so only its time is a start's own; and the times of several numbers of draft
tokens lie near a line, off aside, since the first token brings what drafting costs at all
(docs/decisions/0045-a-start-is-judged-by-its-neighbours.md). A lookup drafts nothing in most steps, so that its start
measures off as well, and how fast the machine was then is known (0047).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean, linear_regression

from stoker.records import Sighting, Way
from stoker.tune.curve import length_of, log_rate
from stoker.tune.families import OFF, Family

# How far a start is off by itself and its minute, as the standard deviation of a logarithm. Between a tuning and its sweep
# one way differed by 6 to 7 % in the middle (docs/measured/tuning.md), a part of which all ways had in common.
START_SD = 0.04
BENT_SD = 0.03  # how far off the line a step's time is without any luck
BASE_SD = 0.005  # how far a lookup's steps without drafts are from off's, the machine being the same (0047)
LEAST_ON_A_LINE = 3  # two lie on a line whatever their luck
KINDS = ("draft", "eagle", "eagle3", "mtp")  # what a lookup finds ends where it ends, and more tokens change nothing


def luck_of(families: Iterable[Family], measured: Sequence[Sighting]) -> dict[Way, float]:
    """Returns by how much, as a logarithm, ways were likely measured too fast; what nothing else tells of is left out."""
    found = _of_lookups(measured)
    for family in families:
        own = [one for one in measured if one.way in family.ways and one.way.draft_tokens and not one.is_level]
        if family.kind in KINDS and family.axis and len(own) >= LEAST_ON_A_LINE:
            found |= {one.way: _luck(one, off) for one, off in zip(own, _off_the_line(own), strict=True)}
    return found


def knows_luck(one: Sighting) -> bool:
    """Tells whether its own start says how fast the machine was then: of off, and of lookups with counters."""
    return one.way.kind in (OFF.kind, "ngram") and all(seen.base_step_s for seen in one.seen)


def _of_lookups(measured: Sequence[Sighting]) -> dict[Way, float]:
    """Returns the luck of lookups beside off: by how much their steps without drafts were faster than its own."""
    told = [one for one in measured if knows_luck(one)]
    off = next((one for one in told if one.way == OFF), None)
    share = START_SD**2 / (START_SD**2 + BASE_SD**2)
    return {} if off is None else {one.way: share * (_base_log(off) - _base_log(one)) for one in told if one.way != OFF}


def _base_log(one: Sighting) -> float:
    return fmean(math.log(seen.base_step_s or math.inf) for seen in one.seen)


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
