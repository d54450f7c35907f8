"""The seconds of a step: its terms times the fitted factors of this machine. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from pathlib import Path

from stoker.plan.speed.work import Terms

FILE = Path(__file__).parent / "data" / "fit.json"
# What is expected before anything was measured: seconds for a GB, a TFLOP, a layer or a request; a factor of 1 otherwise.
# Then how far off that may well be, as the standard deviation of its logarithm.
PRIORS: dict[str, tuple[float, float]] = {
    "gb": (1 / 235, 0.1),
    "tf": (1 / 60, 0.3),
    "step.layer": (3e-5, 0.7),
    "step.request": (1e-4, 1.0),
    "step.eager": (2e-4, 1.0),
    "step.link": (1e-4, 1.0),
    "step.draft": (1e-3, 0.7),
    "step.drafted": (1e-4, 1.0),
    "tf.fp8": (0.6, 0.4),
    "tf.fp8.packed": (1.2, 0.4),
    "tf.fp4": (0.8, 0.4),
    "tf.fp4.packed": (1.0, 0.4),
    "tf.routed": (1.2, 0.4),
    "tf.attention": (1.5, 0.5),
    "tf.window": (0.7, 0.5),
    "tf.state": (3.0, 1.0),
    "step.draft.ngram": (2e-3, 0.7),
}
USUAL_SPREAD = 0.25


def cost_s(terms: Terms, factors: Mapping[str, float]) -> float:
    """Returns the seconds of these terms."""
    return sum(amount * prod(value_of(name, factors) for name in names) for names, amount in terms.items())


def value_of(name: str, factors: Mapping[str, float]) -> float:
    """Returns a factor: fitted, or as expected where nothing was measured that has it."""
    found = factors.get(name)
    return found if found is not None else PRIORS[name][0] if name in PRIORS else 1.0
