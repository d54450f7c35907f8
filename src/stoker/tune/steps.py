"""How long a step without drafts takes while a lookup runs, by the repeats' own counts of steps and draft tokens. Pure.

A lookup drafts nothing in most steps, and more in some prompts than in others, so that its repeats tell both: a step's own
time, and what each draft token adds to it (docs/decisions/0047-a-lookups-start-measures-off-too.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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
    """Returns the seconds of a step without drafts, by least squares of the relative errors; None where nothing tells it."""
    if len(repeats) < LEAST_REPEATS:
        return None
    steps = [one.steps / one.seconds for one in repeats]
    drafts = [one.draft_tokens / one.seconds for one in repeats]
    both, squares = sum(a * b for a, b in zip(steps, drafts, strict=True)), sum(b * b for b in drafts)
    own = sum(a * a for a in steps) - (both * both / squares if squares else 0.0)  # what drafts do not say as well
    if own <= 1e-9 * sum(a * a for a in steps):
        return None
    base_s = (sum(steps) - (both * sum(drafts) / squares if squares else 0.0)) / own
    each_s = (sum(drafts) - both * base_s) / squares if squares else 0.0
    errors = [1.0 - base_s * a - each_s * b for a, b in zip(steps, drafts, strict=True)]
    error = math.sqrt(sum(one * one for one in errors) / (len(errors) - 2) / own)
    return base_s if base_s > 0 and error <= KNOWN * base_s else None
