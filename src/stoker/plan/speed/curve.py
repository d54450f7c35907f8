"""The rate with every number of draft tokens, from how often each position is right. Pure.

A run at one large number of draft tokens tells each position's rate, and so the whole curve; and where only the mean accept
rate of such a run is known, its positions are taken to fall as they usually do.
"""

from __future__ import annotations

from collections.abc import Sequence

from stoker.plan.speed.cost import cost_s
from stoker.plan.speed.prediction import Fit
from stoker.plan.speed.speculation import Drafting, draft_terms, expected_length, falling_rates, first_rate_for
from stoker.plan.speed.work import Served, Step, added, step_terms
from stoker.records import Record


class CurvePoint(Record, frozen=True):
    """What a number of draft tokens gives; 0 is no drafting. The rate is of all requests together."""

    draft_tokens: int
    accept_length: float
    decode_tok_s: float


def rates_from_mean(accept_rate: float, draft_tokens: int) -> list[float]:
    """Returns the conditional rates of the positions, from accepted / proposed draft tokens of one run."""
    return [
        min(1.0, rate) for rate in falling_rates(first_rate_for(1 + accept_rate * draft_tokens, draft_tokens), draft_tokens)
    ]


def drafting_curve(
    served: Served, sort: str, rates: Sequence[float], fit: Fit, requests: int = 1, depth: float = 0.0,
    measured_plain: float | None = None, draft: Served | None = None,
) -> tuple[CurvePoint, ...]:  # fmt: skip
    """Returns the rate for 0 to as many draft tokens as there are rates; `measured_plain` is that without drafting.

    `draft` is the model that drafts, where that is one of its own.

    What was measured without drafting corrects all points: the bytes of a step are known, so what makes it slower than
    expected is taken to come once in a verify step too; what makes it faster, to make all of it faster.
    """
    plain_s = cost_s(step_terms(served, Step(requests, depth=depth)), fit.factors)
    measured_s = plain_s if measured_plain is None else requests / measured_plain
    more_s, times = max(0.0, measured_s - plain_s), min(1.0, measured_s / plain_s)
    points = [CurvePoint(0, 1.0, requests / measured_s)]
    for count in range(1, len(rates) + 1):
        length = expected_length(rates[:count])
        drafting = Drafting(sort, count, length, model=draft)
        seconds = verify_step_s(served, drafting, fit, requests, depth) * times + more_s
        points.append(CurvePoint(count, length, requests * length / seconds))
    return tuple(points)


def verify_step_s(served: Served, drafting: Drafting, fit: Fit, requests: int = 1, depth: float = 0.0) -> float:
    """Returns the seconds of drafting and of verifying what was drafted."""
    step = Step(requests, tokens=drafting.draft_tokens + 1.0, depth=depth)
    return cost_s(added(step_terms(served, step), draft_terms(served, drafting, step)), fit.factors)
