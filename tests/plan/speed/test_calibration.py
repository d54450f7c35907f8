"""The fit: that it finds what is in the data, is not bent by wrong figures, and that what is shipped belongs together."""

from __future__ import annotations

import csv
import dataclasses
import math
from pathlib import Path

import pytest
from calibration.fitting import find_factors, learn, solve
from calibration.observations import DATA, Observation, read_data, read_observations
from calibration.spread import Miss, find_spread, percentile

from stoker.plan.speed.cost import cost_s
from stoker.plan.speed.prediction import load_fit

LEFT_OUT = DATA.with_name("left_out.csv")
TRUE = {**load_fit().factors, "gb": 1 / 200, "step.layer": 9e-5}
RATES = load_fit().first_rates


@pytest.fixture(scope="module")
def some() -> list[Observation]:
    """Every eleventh measured row, as if the machine had the factors of `TRUE`."""
    observations = read_observations(read_data()[::11])
    return [dataclasses.replace(one, seconds=cost_s(one.terms(RATES), TRUE)) for one in observations if one.weight]


def misses(observations: list[Observation], factors: dict[str, float]) -> list[float]:
    return sorted(abs(math.log(cost_s(one.terms(RATES), factors) / cost_s(one.terms(RATES), TRUE))) for one in observations)


def test_the_fit_finds_the_machine_that_made_the_figures(some: list[Observation]) -> None:
    found = misses(some, find_factors(some, RATES))
    assert found[len(found) // 2] < 0.02


def test_a_few_wrong_figures_bend_nothing(some: list[Observation]) -> None:
    wrong = [dataclasses.replace(one, seconds=one.seconds * (5 if place % 12 == 0 else 1)) for place, one in enumerate(some)]
    found = misses(some, find_factors(wrong, RATES))
    assert found[len(found) // 2] < 0.04


def test_the_same_data_give_the_same_fit(some: list[Observation]) -> None:
    assert learn(some) == learn(some)


def test_equations_are_solved() -> None:
    assert solve([[0.0, 2.0], [4.0, 1.0]], [6.0, 11.0]) == pytest.approx([2.0, 3.0])


def test_a_percentile_counts_weights() -> None:
    assert percentile([(1.0, 1.0), (2.0, 8.0), (9.0, 1.0)], 0.5) == 2.0


def test_an_interval_is_wider_where_misses_are() -> None:
    given = [
        Miss(line, f"model {line % 7}", sign * size, ("all", trait, "drafting none"), 1.0)
        for line in range(40)
        for trait, size in (("near", 0.02 + line / 1000), ("far", 0.4 + line / 100))
        for sign in (-1, 1)
    ]
    spread = find_spread(given)
    near, far = (spread.interval(Miss(0, "new", 0.0, ("all", trait, "drafting none"), 1.0)) for trait in ("near", "far"))
    assert far[1] - far[0] > 3 * (near[1] - near[0])


def lines(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_what_was_left_out_is_what_is_in_the_data() -> None:
    """The page is made of these files; a fit of other data would show here."""
    data = dict(enumerate(lines(DATA), start=2))
    judged = [line for line in lines(LEFT_OUT) if line["kind"] != "prefill"]
    observations = {one.line: one for one in read_observations(read_data()) if not one.is_prefill}
    assert {int(line["line"]) for line in judged} == observations.keys()
    for line in judged:
        assert float(line["measured_tok_s"]) == pytest.approx(1 / observations[int(line["line"])].seconds, rel=1e-3)
        assert data[int(line["line"])]["source"]


def test_the_shipped_factors_explain_the_data_better_than_those_without_a_model() -> None:
    """A left-out model is predicted worse than one that was seen, or the fit was not of these rows."""
    observations = [one for one in read_observations(read_data()) if not one.is_prefill and one.weight]
    fit = load_fit()
    seen = sorted(abs(cost_s(one.terms(fit.first_rates), fit.factors) / one.seconds - 1) for one in observations)
    left_out = sorted(
        abs(float(line["measured_tok_s"]) / float(line["predicted_tok_s"]) - 1)
        for line in lines(LEFT_OUT)
        if line["kind"] != "prefill"
    )
    assert seen[len(seen) // 2] < left_out[len(left_out) // 2] < 0.18


def test_targets_are_met_for_models_that_were_left_out() -> None:
    for kind, most in (("plain", 0.12), ("drafted", 0.18)):
        ours = [line for line in lines(LEFT_OUT) if line["kind"] == kind]
        errors = sorted(abs(float(line["predicted_tok_s"]) / float(line["measured_tok_s"]) - 1) for line in ours)
        inside = [float(line["low_tok_s"]) <= float(line["measured_tok_s"]) <= float(line["high_tok_s"]) for line in ours]
        assert errors[len(errors) // 2] <= most
        assert 0.75 <= sum(inside) / len(inside) <= 0.85
