"""How long a measurement is said to take."""

from __future__ import annotations

import pytest

from stoker.bench.cell import Settings
from stoker.cli.bench_progress import left_s, left_text, plan_text

BY_TIME = Settings(seed=1, runs=None, precision=0.05, budget_s=120.0, silence_s=300.0)
BY_RUNS = BY_TIME._replace(runs=3)
SOAK = BY_TIME._replace(soak_s=3600.0)


def test_before_the_first_cell_is_measured_its_budget_bounds_it() -> None:
    assert left_s(BY_TIME, 4, [], 30.0) == 90.0 + 3 * 120.0
    assert left_text(BY_TIME, 4, [], 0.0) == "up to about 8 min left"


def test_measured_cells_tell_what_the_others_take() -> None:
    assert left_s(BY_TIME, 4, [10.0, 30.0], 5.0) == 15.0 + 20.0
    assert left_text(BY_TIME, 4, [10.0, 30.0], 5.0) == "about 35 s left"
    assert left_s(BY_TIME, 4, [10.0, 10.0, 10.0], 99.0) == 0.0


def test_repeats_that_were_counted_out_are_bounded_by_nothing_until_one_cell_is_known() -> None:
    assert left_s(BY_RUNS, 4, [], 0.0) is None
    assert left_text(BY_RUNS, 4, [], 0.0) == ""
    assert left_s(BY_RUNS, 2, [7.0], 0.0) == 7.0


@pytest.mark.parametrize(
    ("settings", "count", "said"),
    [
        (BY_TIME, 4, "4 cells, each until it is precise or its 2 min (--budget) are over: up to about 8 min"),
        (BY_TIME, 1, "1 cell, each until it is precise or its 2 min (--budget) are over"),
        (BY_RUNS, 2, "2 cells"),
        (SOAK, 1, "1 cell, 1 h each"),
    ],
)
def test_the_first_line_says_how_long_all_of_it_may_take(settings: Settings, count: int, said: str) -> None:
    assert plan_text(settings, count) == said
