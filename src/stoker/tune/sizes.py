"""What to expect of a size that was not measured, from those that were. Pure.

Nobody knows how a machine answers to another size, only that sizes near each other give nearly the same. So the rate is
taken to go straight from one measured size to the next, and to stay beyond the last, and the band grows with the distance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from stoker.tune.curve import Guess

# How far the rate may go, as a standard deviation of its logarithm, over a factor of two or a step of the share.
STRIDE = 0.12
SHARE_STEP = 0.05


def guess_size(place: float, measured: Mapping[float, float]) -> Guess:
    """Returns the rate to expect at a place, from the logarithms of rates at others, at least one."""
    below = max((one for one in measured if one < place), default=None)
    above = min((one for one in measured if one > place), default=None)
    if below is None or above is None:
        nearest = above if below is None else below
        if nearest is None:
            raise ValueError("nothing was measured")
        return Guess(measured[nearest], STRIDE * math.sqrt(abs(place - nearest)))
    share = (place - below) / (above - below)
    mean = measured[below] + share * (measured[above] - measured[below])
    return Guess(mean, STRIDE * math.sqrt((place - below) * (above - place) / (above - below)))


def places_of(values: Sequence[float | None], is_share: bool) -> list[float]:
    """Returns where sizes stand: factors of two, or steps of the memory; what the engine chooses stands in the middle."""
    known = [one for one in values if one is not None]
    found = [round(value / SHARE_STEP, 6) if is_share else math.log2(value) for value in known]
    middle = (min(found) + max(found)) / 2 if found else 0.0
    spots = iter(found)
    return [middle if one is None else next(spots) for one in values]
