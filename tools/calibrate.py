"""Fits the speed of a GB10 to published measurements, and judges the fit by leaving out one model after another.

Writes the factors to `src/stoker/plan/speed/data/fit.json` and every row's prediction, made by a fit that never saw its
model, to `tools/calibration/left_out.csv`. Then run `make docs`. Takes a few minutes, needs only Python, and gives the same
files each time.
"""

from __future__ import annotations

import csv
import json
import math
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path

from calibration.fitting import Learned, learn
from calibration.observations import Observation, read_data, read_observations
from calibration.spread import Miss, find_spread

from stoker.plan.speed.cost import cost_s
from stoker.plan.speed.limit import limit_tok_s
from stoker.plan.speed.prediction import FILE, capped, kind_of, traits

LEFT_OUT = Path(__file__).parent / "calibration" / "left_out.csv"
PREFILL = ("all", "prefill")
COLUMNS = ("line", "model", "kind", "measured_tok_s", "predicted_tok_s", "low_tok_s", "high_tok_s", "limit_tok_s")


@cache
def observed() -> list[Observation]:
    """Returns all observations; a forked process has them already."""
    return read_observations(read_data())


def without(model: str, start: dict[str, float]) -> Learned:
    """Returns what is learned when a model, in all its forms, is left out."""
    return learn([one for one in observed() if one.model != model], start)


def miss_of(one: Observation, learned: Learned) -> Miss:
    """Returns how far off the prediction is that this fit makes."""
    factors, rates = learned
    ratio = cost_s(one.terms(rates), factors) / one.seconds
    return Miss(one.line, one.model, math.log(ratio), PREFILL if one.is_prefill else traits(one.asked), one.weight)


def left_out_rows(observations: list[Observation], fits: dict[str, Learned]) -> list[dict[str, object]]:
    """Returns each row's prediction by the fit without its model, and the interval from the misses of all other models."""
    misses = [miss_of(one, fits[one.model]) for one in observations]
    found: list[dict[str, object]] = []
    spreads = {model: find_spread([miss for miss in misses if miss.model != model]) for model in fits}
    for one, miss in zip(observations, misses, strict=True):
        measured = 1 / one.seconds
        predicted = measured / math.exp(miss.log_ratio)
        low, high = spreads[one.model].interval(miss)
        limit_tok = math.inf if one.is_prefill else limit_tok_s(one.asked)
        highest = capped(predicted * math.exp(high), predicted, miss.traits, limit_tok)
        figures = (measured, predicted, predicted * math.exp(low), highest)
        limit = "" if one.is_prefill else f"{limit_tok:.4g}"
        cells = (one.line, one.model, kind_of(miss.traits), *(f"{figure:.4g}" for figure in figures), limit)
        found.append(dict(zip(COLUMNS, cells, strict=True)))
    return found


def _rounded(values: dict[str, float]) -> dict[str, float]:
    return {name: float(f"{value:.4g}") for name, value in values.items()}


def main() -> None:
    """Fits, judges and writes."""
    observations = observed()
    models = sorted({one.model for one in observations})
    factors, rates = learn(observations)
    with ProcessPoolExecutor(mp_context=get_context("fork")) as pool:
        fits = dict(zip(models, pool.map(partial(without, start=factors), models), strict=True))
    misses = [miss_of(one, fits[one.model]) for one in observations]
    spread = find_spread(misses)
    FILE.write_text(json.dumps({
        "factors": _rounded(factors), "first_rates": rates, "spread": _rounded(spread.parts),
        "percentiles": {kind: [round(end, 3) for end in ends] for kind, ends in spread.percentiles.items()},
    }, indent=1, sort_keys=True) + "\n")  # fmt: skip
    with LEFT_OUT.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(left_out_rows(observations, fits))


if __name__ == "__main__":
    main()
