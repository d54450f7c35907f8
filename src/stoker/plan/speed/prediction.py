"""The decode rate to expect, the interval that should hold it four times in five, and what the memory allows. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec

from stoker.plan.speed.cost import cost_s
from stoker.plan.speed.limit import limit_tok_s
from stoker.plan.speed.rows import Asked, read_row
from stoker.plan.speed.schedule import burst_work
from stoker.plan.speed.work import Terms
from stoker.records import Prediction, Record

FILE = Path(__file__).parent / "data" / "fit.json"
NOT_DRAFTED = "drafting none"
PROMPT_CLASSES = ((4096, "long"), (0, "short"))


class Fit(Record, frozen=True):
    """What `tools/calibrate.py` found: factors, usual first rates, and how far off predictions were by their traits.

    `percentiles` are the 10th and 90th of the logarithm of measured by predicted, in units of the spread, by kind.
    """

    factors: dict[str, float]
    first_rates: dict[str, float]
    spread: dict[str, float]
    percentiles: dict[str, tuple[float, float]]

    def between(self, rate: float, found: tuple[str, ...], limit_tok_s: float) -> Prediction:
        """Returns a rate with the interval of its traits, which ends where the memory's limit is known for certain."""
        width = spread_of(found, self.spread)
        low, high = self.percentiles[kind_of(found)]
        fastest = capped(rate * math.exp(high * width), rate, found, limit_tok_s)
        return Prediction(rate, rate * math.exp(low * width), fastest, limit_tok_s)


@cache
def load_fit() -> Fit:
    """Returns the fit that comes with this version."""
    return msgspec.json.decode(FILE.read_bytes(), type=Fit)


def traits(asked: Asked) -> tuple[str, ...]:
    """Returns what decides how far off a prediction may be."""
    drafting, shape, burst = asked.drafting, asked.served.shape, asked.burst
    together = "alone" if burst.requests == 1 else next(word for least, word in PROMPT_CLASSES if burst.prompt >= least)
    drafted = "none" if drafting is None else "measured" if drafting.is_measured else "usual"
    return (
        "all",
        f"engine {asked.served.engine}",
        f"requests {together}",
        f"drafting {drafted}",
        f"model {'guessed' if shape.is_guess else 'known'}",
        f"weights {'guessed' if asked.served.layout.is_guess else 'mixture' if shape.routed else 'dense'}",
        f"boxes {'one' if asked.served.boxes * asked.replicas == 1 else 'several'}",
    )


def kind_of(found: tuple[str, ...]) -> str:
    """Returns which intervals a prediction with these traits has: those of drafted tokens are a matter of their own."""
    return "prefill" if "prefill" in found else "plain" if NOT_DRAFTED in found else "drafted"


def capped(high_tok_s: float, rate: float, found: tuple[str, ...], limit_tok_s: float) -> float:
    """Returns an interval's upper end, not beyond the limit; a rate that is itself beyond it is left where it is.

    The limit is certain without drafts, whose accepted number is guessed, for weights whose size is known, and where
    requests do not share experts by chance.
    """
    guesses = {"model guessed", "weights guessed"} & {*found}
    is_certain = NOT_DRAFTED in found and not guesses and ("requests alone" in found or "weights dense" in found)
    return min(high_tok_s, max(rate, limit_tok_s)) if is_certain else high_tok_s


def token_terms(asked: Asked) -> Terms:
    """Returns the work for each token of the answer, of all requests together."""
    terms, tokens = burst_work(asked.served, asked.burst, asked.drafting)
    return {factors: amount / tokens / asked.replicas for factors, amount in terms.items()}


def spread_of(found: tuple[str, ...], spread: Mapping[str, float]) -> float:
    """Returns how far off predictions with these traits are, as a logarithm."""
    return math.exp(sum(spread.get(trait, 0.0) for trait in found))


def predict(asked: Asked, fit: Fit) -> Prediction:
    """Returns the prediction for what was asked."""
    rate = 1.0 / cost_s(token_terms(asked), fit.factors)
    return fit.between(rate, traits(asked), limit_tok_s(asked))


def predict_row(row: Mapping[str, str], fit: Fit) -> Prediction | str:
    """Returns the prediction for a row in the columns of published measurements, or why there is none."""
    asked = read_row(row, fit.first_rates)
    return asked if isinstance(asked, str) else predict(asked, fit)
