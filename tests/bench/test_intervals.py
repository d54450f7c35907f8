"""Medians and their intervals, beside a bootstrap that really draws."""

from __future__ import annotations

from random import Random
from statistics import median, quantiles

import pytest
from hypothesis import given
from hypothesis import strategies as some

from stoker.bench.intervals import interval_of, is_as_narrow_as, median_of, spread_of

VALUES = some.lists(some.floats(0.001, 1000.0), min_size=1, max_size=40)


@given(VALUES)
def test_the_median_is_the_one_of_the_standard_library(values: list[float]) -> None:
    assert median_of(values) == pytest.approx(median(values))


@given(some.lists(some.floats(0.001, 1000.0), min_size=3, max_size=40))
def test_the_spread_is_the_distance_of_the_quartiles(values: list[float]) -> None:
    low, _, high = quantiles(values, n=4, method="inclusive")
    assert spread_of(values) == pytest.approx(high - low)


@given(some.lists(some.floats(0.001, 1000.0), min_size=3, max_size=400))
def test_the_interval_holds_the_median_and_is_made_of_values(values: list[float]) -> None:
    low, high = interval_of(values) or (0.0, 0.0)
    assert low <= median_of(values) <= high
    assert {low, high} <= set(values)


@pytest.mark.parametrize("count", [5, 9, 25, 51])
def test_the_interval_is_what_drawing_gives(count: int) -> None:
    random = Random(7)
    values = [float(number) for number in range(count)]
    draws = sorted(median(random.choices(values, k=count)) for _ in range(20_000))
    low, high = interval_of(values) or (0.0, 0.0)
    assert abs(low - draws[500]) <= 1
    assert abs(high - draws[-501]) <= 1


def test_two_values_say_nothing_of_how_far_they_scatter() -> None:
    assert interval_of([1.0, 2.0]) is None
    assert spread_of([1.0, 2.0]) is None
    assert not is_as_narrow_as([1.0, 1.0], 0.5)


def test_narrow_is_the_whole_width_by_the_median() -> None:
    assert is_as_narrow_as([100.0, 101.0, 102.0], 0.02)
    assert not is_as_narrow_as([100.0, 101.0, 102.1], 0.02)
