"""What a cell of the bench tells of a way to draft."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from bench_seen import make_cell, make_repeat, make_request
from stoker.bench.figures import figures_of
from stoker.records import BenchSlo, CellResult, Objective, SpeculationSeen, Way
from stoker.tune.families import OFF
from stoker.tune.reading import read_cell
from stoker.tune.steps import LEAST_REPEATS

FOUR = Way("draft", 4)
QUIET = SpeculationSeen("counters", 0, 0, 0, None, None)
STEPS, TOKENS = 40, 99  # of the request of bench_seen: 100 tokens, the first of which comes with the prompt


def cell(told: SpeculationSeen | None, **more: Any) -> CellResult:
    repeats = (make_repeat(make_request()),)
    facts: dict[str, Any] = {"counted_by": ("usage",), "asked": 1, "failed": 0, "speculation": told, "repeats": repeats,
                             "figures": figures_of(repeats)}  # fmt: skip
    return CellResult(make_cell(), **{**facts, **more})


def counted(by_position: tuple[float, ...] | None, accepted: int = 59) -> SpeculationSeen:
    return SpeculationSeen("counters", 4 * STEPS, accepted, STEPS, accepted / (4 * STEPS), 1 + accepted / STEPS, by_position)


def test_shares_by_position_add_up_to_the_length_of_every_smaller_number() -> None:
    seen = read_cell(cell(counted((0.6, 0.45, 0.3, 0.125))), FOUR, "single")
    assert seen is not None
    assert seen.lengths == pytest.approx((1.6, 2.05, 2.35, 2.475))
    assert seen.lengths_by == "positions"
    assert seen.rates == pytest.approx((96 / 0.96,))


def test_steps_without_drafts_shorten_what_a_mean_step_gives() -> None:
    told = SpeculationSeen("counters", 40, 19, 10, 19 / 40, 2.9, (0.9, 0.5, 0.3, 0.2))
    seen = read_cell(cell(told), FOUR, "single")
    assert seen is not None
    drafted = 10 / (TOKENS - 19)
    assert seen.lengths == pytest.approx(tuple(1 + drafted * one for one in (0.9, 1.4, 1.7, 1.9)))


def test_without_positions_the_mean_is_spread_over_them_as_usual() -> None:
    seen = read_cell(cell(counted(None)), FOUR, "single")
    assert seen is not None
    assert seen.lengths_by == "mean"
    assert seen.lengths[-1] == pytest.approx(1 + 59 / STEPS, rel=0.01)
    assert list(seen.lengths) == sorted(seen.lengths)


def test_sglangs_mean_length_is_enough() -> None:
    seen = read_cell(cell(SpeculationSeen("counters", None, None, STEPS, None, 2.6)), FOUR, "single")
    assert seen is not None
    assert (seen.lengths_by, seen.accept_rate) == ("mean", None)
    assert seen.lengths[-1] == pytest.approx(2.6, rel=0.01)


def by_some_replies(length: float) -> SpeculationSeen:
    return SpeculationSeen("counters; by position 4 more replies", None, None, STEPS, 0.5, length, (0.4, 0.2, 0.1, 0.1))


def test_positions_of_some_replies_give_the_shape_and_the_length_of_all_the_level() -> None:
    seen = read_cell(cell(by_some_replies(2.6)), FOUR, "single")
    assert seen is not None
    assert seen.lengths_by == "positions"
    assert seen.lengths == pytest.approx((1.8, 2.2, 2.4, 2.6))


@pytest.mark.parametrize("length", [4.6, 1.0], ids=["a share would be above all", "nothing was accepted"])
def test_positions_that_cannot_add_up_to_the_length_of_all_leave_it_a_mean(length: float) -> None:
    seen = read_cell(cell(by_some_replies(length)), FOUR, "single")
    assert seen is not None
    assert seen.lengths_by == "mean"
    assert seen.lengths[-1] == pytest.approx(length, rel=0.01)


@pytest.mark.parametrize("told", [None, SpeculationSeen("counters", 0, 0, 0, None, None)], ids=["reset", "none drafted"])
def test_counters_that_tell_nothing_leave_the_rate(told: SpeculationSeen | None) -> None:
    seen = read_cell(cell(told), FOUR, "single")
    assert seen is not None
    assert (seen.lengths, seen.lengths_by) == ((), "usual")


def test_a_cell_with_failed_requests_is_no_measurement() -> None:
    assert read_cell(cell(None, failed=1), FOUR, "single") is None


def test_a_figure_that_is_missing_is_no_rate() -> None:
    assert read_cell(cell(None, figures=()), FOUR, "single") is None
    assert read_cell(cell(None), FOUR, "goodput") is None, "no limits were set"


def test_goodput_counts_tokens_of_requests_within_their_limits_alone() -> None:
    repeats = tuple(make_repeat(make_request(), make_request(ttft_s=ttft_s)) for ttft_s in (0.2, 0.9))
    figures = figures_of(repeats, BenchSlo(ttft_s=0.5))
    good, speed = (read_cell(cell(None, repeats=repeats, figures=figures), FOUR, objective)
                   for objective in get_args(Objective)[:0:-1])  # fmt: skip
    assert good is not None
    assert speed is not None
    assert [one / other for one, other in zip(good.rates, speed.rates, strict=True)] == [1.0, 0.5]


def test_a_repeat_without_a_good_request_has_a_rate_still() -> None:
    repeats = (make_repeat(make_request(ttft_s=0.9)),)
    seen = read_cell(cell(None, repeats=repeats, figures=figures_of(repeats, BenchSlo(ttft_s=0.5))), FOUR, "goodput")
    assert seen is not None
    assert 0 < seen.rates[0] < 2


def test_off_and_lookups_tell_a_step_without_drafts_and_other_drafts_do_not() -> None:
    told = SpeculationSeen("counters", 40, 19, 10, 19 / 40, 2.9)
    repeats = tuple(make_repeat(make_request(), speculation=told if place % 2 else QUIET) for place in range(LEAST_REPEATS))
    whole = cell(told, repeats=repeats, figures=figures_of(repeats))

    def base_s(way: Way, objective: Objective = "single", lookup_s: float | None = 0.001) -> float | None:
        seen = read_cell(whole, way, objective, None, lookup_s)
        assert seen is not None
        return seen.base_step_s

    step_s = base_s(Way("ngram", 4), lookup_s=0.0)
    assert step_s is not None
    assert base_s(Way("ngram", 4)) == pytest.approx(step_s - 0.001), "what looking costs is no machine that became slower"
    assert base_s(OFF) == base_s(OFF, lookup_s=None) is not None
    assert base_s(FOUR) is None, "another draft adds to each step"
    assert base_s(Way("ngram", 4), lookup_s=None) is None, "nobody knows what looking costs there"
    assert base_s(Way("ngram", 4), "throughput") is None, "of many at once nobody knows whose a step is"
