"""How far a mean may be off by chance."""

from __future__ import annotations

import pytest

from stoker.tune.ratios import interval, student_t

# Printed tables of Student's distribution, both tails together.
PRINTED = {
    (0.95, 1): 12.706, (0.95, 2): 4.303, (0.95, 3): 3.182, (0.95, 4): 2.776, (0.95, 7): 2.365, (0.95, 30): 2.042,
    (0.95, 120): 1.980, (0.8, 1): 3.078, (0.8, 2): 1.886, (0.8, 5): 1.476, (0.99, 2): 9.925, (0.99, 10): 3.169,
}  # fmt: skip


@pytest.mark.parametrize(("asked", "printed"), PRINTED.items())
def test_the_standard_errors_that_hold_a_mean_are_those_of_printed_tables(asked: tuple[float, int], printed: float) -> None:
    assert student_t(*asked) == pytest.approx(printed, abs=0.0005)


def test_three_values_have_an_interval_and_two_have_none() -> None:
    middle, half = interval([1.0, 2.0, 3.0], 0.95)
    assert (middle, half) == pytest.approx((2.0, 4.303 / 3**0.5), abs=0.001)
    assert interval([1.0, 3.0], 0.95) == (2.0, None)
