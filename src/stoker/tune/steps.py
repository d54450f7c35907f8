"""How long a step without drafts takes while a lookup runs, by the repeats' own counts of steps and draft tokens. Pure.

A lookup drafts nothing in most steps, and more in some prompts than in others. So a mean step takes longer by each of its
draft tokens, and the line through all repeats begins at a step without any
(docs/decisions/0047-a-lookups-start-measures-off-too.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, linear_regression
from typing import NamedTuple

from stoker.records import BenchRepeat, SpeculationSeen

LEAST_REPEATS = 8
KNOWN = 0.01  # a time whose standard error is a larger share of it is not known


class Steps(NamedTuple):
    """What a repeat's time went to: the steps of the model, and the draft tokens that these verified."""

    seconds: float
    steps: int
    draft_tokens: int


def read_steps(repeats: Sequence[BenchRepeat], rates: Sequence[float], *, drafts: bool) -> tuple[Steps, ...]:
    """Returns the steps of repeats of one request each, whose rates are tokens/s after the first one; else nothing."""
    found = [_steps(repeat, rate, drafts) for repeat, rate in zip(repeats, rates, strict=False)]
    known = tuple(one for one in found if one is not None)
    return known if len(known) == len(repeats) else ()


def _steps(repeat: BenchRepeat, rate: float, drafts: bool) -> Steps | None:
    tokens = (repeat.requests[0].output_tokens or 0) - 1 if len(repeat.requests) == 1 else 0
    drafted, accepted = _drafts(repeat.speculation) if drafts else (0, 0)
    if drafted is None or accepted is None or accepted >= tokens or rate <= 0:
        return None
    return Steps(tokens / rate, tokens - accepted, drafted)


def _drafts(told: SpeculationSeen | None) -> tuple[int | None, int | None]:
    return (None, None) if told is None else (told.draft_tokens, told.accepted_tokens)


def base_step_s(repeats: Sequence[Steps]) -> float | None:
    """Returns the seconds of a step without drafts, where the line through all begins; None where that is not told."""
    drafts = [one.draft_tokens / one.steps for one in repeats]
    times_s = [one.seconds / one.steps for one in repeats]
    if len(repeats) < LEAST_REPEATS or (len(set(drafts)) == 1 and any(drafts)):
        return None
    each_s, base_s = linear_regression(drafts, times_s) if any(drafts) else (0.0, fmean(times_s))
    errors = [time_s - base_s - each_s * count for count, time_s in zip(drafts, times_s, strict=True)]
    middle = fmean(drafts)
    away = sum((count - middle) ** 2 for count in drafts)
    share = 1 / len(drafts) + (middle**2 / away if away else 0.0)  # of the errors' variance that the line's beginning has
    error = math.sqrt(share * sum(one * one for one in errors) / (len(errors) - 2))
    return base_s if error <= KNOWN * base_s else None
