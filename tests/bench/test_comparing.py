"""Two runs side by side: sizes, intervals and verdicts that are not more sure than the values are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise, product
from math import comb, exp
from random import Random
from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_samples import make_cell, make_figure, make_repeats, make_result, make_run
from stoker.bench.comparing.compare import compare
from stoker.bench.comparing.permutation import holm, least_p, null_of, null_of_pairs, p_of
from stoker.bench.comparing.sizes import chances_of_median, ratio_of, ratio_of_pairs
from stoker.bench.comparing.subjects import differences_of_subjects
from stoker.bench.comparing.values import values_by_repeat
from stoker.bench.formats.figures import number_of
from stoker.records import BenchRun, BenchSubject, Comparison, Difference, FigureChange, SpeculationSeen

NAME = "total_e2e_tps"
few = st.lists(st.integers(1, 50).map(float), min_size=3, max_size=5)


def make_side(*cells: Sequence[float], name: str = NAME, **changes: Any) -> BenchRun:
    """Returns a run with one figure, its cells told by their values."""
    results = (
        make_result(make_cell(100 * number), make_figure(name, values)) for number, values in enumerate(cells, start=1)
    )
    return make_run(*results, **changes)


def changes_of(comparison: Comparison) -> list[FigureChange]:
    return [change for cell in comparison.cells for change in cell.figures]


def noisy(random: Random, count: int, middle: float = 100.0) -> list[float]:
    return [middle * exp(random.gauss(0, 0.03)) for _ in range(count)]


# Verdicts.


def test_a_clear_change_is_told_with_its_size_and_interval() -> None:
    (change,) = changes_of(compare(make_side((100, 101, 99, 100, 102)), make_side((112, 113, 111, 112, 114))))
    assert change.verdict == "better"
    assert change.ratio == pytest.approx(1.12)
    assert change.low is not None
    assert change.high is not None
    assert 1.08 < change.low < 1.12 < change.high < 1.16
    assert change.p == pytest.approx(2 / comb(10, 5))


def test_less_time_is_better_and_less_rate_is_worse() -> None:
    slow, fast = (0.20, 0.21, 0.19, 0.22, 0.20), (0.10, 0.11, 0.09, 0.12, 0.10)
    assert [one.verdict for one in changes_of(compare(make_side(slow, name="ttft_s"), make_side(fast, name="ttft_s")))] == [
        "better"
    ]
    assert [one.verdict for one in changes_of(compare(make_side(slow), make_side(fast)))] == ["worse"]


def test_the_same_values_are_no_difference() -> None:
    values = (100, 104, 97, 101, 99, 103)
    (change,) = changes_of(compare(make_side(values), make_side(values)))
    assert (change.verdict, change.ratio, change.p) == ("alike", 1.0, 1.0)


@pytest.mark.parametrize(("count", "has_interval"), [(1, False), (2, False), (3, True)])
def test_too_few_repeats_have_no_verdict_however_far_apart(count: int, has_interval: bool) -> None:
    (change,) = changes_of(compare(make_side((100.0, 101, 102)[:count]), make_side((200.0, 201, 202)[:count])))
    assert (change.verdict, change.p, change.low is not None) == ("too few", None, has_interval)


def test_among_many_cells_five_repeats_tell_no_cell_apart_but_all_together() -> None:
    random = Random(3)
    a, b = ([noisy(random, 5, middle) for _ in range(8)] for middle in (100.0, 110.0))
    comparison = compare(make_side(*a), make_side(*b))
    assert {change.verdict for change in changes_of(comparison)} == {"too few"}
    (overall,) = comparison.overall
    assert overall.verdict == "better"
    assert overall.low is not None
    assert overall.high is not None
    assert 1.05 < overall.low < overall.ratio < overall.high < 1.15


def test_chance_alone_seldom_makes_a_verdict() -> None:
    random, wrong, trials = Random(5), 0, 60
    for _ in range(trials):
        a, b = ([noisy(random, 8) for _ in range(4)] for _ in range(2))
        wrong += any(change.verdict in ("better", "worse") for change in changes_of(compare(make_side(*a), make_side(*b))))
    assert wrong <= 7  # of 60 at 5 %, more than 7 come about once in 50 times; the seed is fixed


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    random, held, trials = Random(7), 0, 300
    for _ in range(trials):
        size = ratio_of(noisy(random, 8), noisy(random, 8, 110.0))
        assert size is not None
        held += size.low <= 1.1 <= size.high
    assert held / trials > 0.9


# The tests' own arithmetic, against counting everything.


@given(few, few)
def test_ranks_are_counted_as_all_choices_would_be(a: list[float], b: list[float]) -> None:
    joined, null = [*a, *b], null_of(a, b)
    ranks = [sum(other < one for other in joined) * 2 + sum(other == one for other in joined) + 1 for one in joined]
    middle = len(b) * (len(joined) + 1)
    sums = [sum(ranks[place] for place in chosen) - middle for chosen in combinations(range(len(joined)), len(b))]
    far = sum(abs(each) >= abs(null.seen) for each in sums) / len(sums)
    assert p_of(null) == pytest.approx(far)
    assert null.seen == sum(ranks[len(a) :]) - middle
    assert least_p(null) == pytest.approx(sum(abs(each) == max(map(abs, sums)) for each in sums) / len(sums))


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=3, max_size=8))
def test_signs_are_counted_as_all_choices_would_be(pairs: list[tuple[int, int]]) -> None:
    a, b = ([float(pair[side]) for pair in pairs] for side in (0, 1))
    null = null_of_pairs(a, b)
    sizes = null_sizes(a, b)
    choices = product((1, -1), repeat=len(sizes))
    sums = [sum(sign * size for sign, size in zip(signs, sizes, strict=True)) for signs in choices]
    assert p_of(null) == pytest.approx(sum(abs(each) >= abs(null.seen) for each in sums) / len(sums))


def null_sizes(a: list[float], b: list[float]) -> list[int]:
    """Returns the doubled ranks of the changes that are none of nothing."""
    logs = [abs(top / bottom) if top > bottom else bottom / top for bottom, top in zip(a, b, strict=True) if top != bottom]
    rounded = [round(each, 12) for each in logs]
    return [sum(o < one for o in rounded) * 2 + sum(o == one for o in rounded) + 1 for one in rounded]


def test_many_values_are_drawn_with_a_seed_and_agree_with_counting() -> None:
    random = Random(9)
    a, b = noisy(random, 21), noisy(random, 21, 102.0)
    drawn, counted = null_of(a, b), null_of(a[:20], b[:20])
    assert not drawn.is_counted
    assert counted.is_counted
    assert p_of(drawn) == p_of(null_of(a, b))
    assert p_of(drawn) == pytest.approx(p_of(counted), abs=0.1)
    assert p_of(null_of(a, [each * 9 for each in a])) > 0  # a draw never proves that something is impossible


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_never_makes_a_p_smaller_and_keeps_their_order(ps: list[float]) -> None:
    adjusted = holm(ps)
    assert all(p <= each <= 1 for p, each in zip(ps, adjusted, strict=True))
    assert max(adjusted) >= max(ps)
    order = sorted(range(len(ps)), key=lambda place: ps[place])
    assert all(adjusted[one] <= adjusted[other] for one, other in pairwise(order))


def test_holm_gives_the_textbooks_figures() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


# Sizes.


@given(st.lists(st.integers(1, 9).map(float), min_size=3, max_size=5))
def test_the_bootstrap_is_worked_out_as_drawing_everything_would(values: list[float]) -> None:
    draws = [median(draw) for draw in product(values, repeat=len(values))]
    if len(values) % 2:
        for value in set(values):
            worked_out = sum(chance for each, chance in chances_of_median(values) if each == value)
            assert worked_out == pytest.approx(sum(draw == value for draw in draws) / len(draws), abs=1e-6)
    assert sum(chance for _, chance in chances_of_median(values)) == pytest.approx(1, abs=1e-6)


@given(few, few)
def test_an_interval_holds_its_ratio(a: list[float], b: list[float]) -> None:
    size = ratio_of(a, b)
    assert size is not None
    assert size.low <= median(b) / median(a) * (1 + 1e-9)
    assert size.high >= median(b) / median(a) * (1 - 1e-9)


def test_a_long_run_is_no_harder_than_a_short_one() -> None:
    random = Random(4)
    size = ratio_of(noisy(random, 5000), noisy(random, 5000, 103.0))
    assert size is not None
    assert 1.02 < size.low < 1.03 < size.high < 1.04


def test_pairs_are_compared_pair_by_pair() -> None:
    prompts = [10.0, 200.0, 3000.0, 40.0, 500.0, 6.0]  # prompts differ far more than the runs do
    size = ratio_of_pairs(prompts, [each * 1.1 for each in prompts])
    assert size is not None
    assert (size.low, size.high) == pytest.approx((1.1, 1.1))


# What is one value.


def test_requests_of_one_repeat_count_once() -> None:
    result = make_result(make_cell(concurrency=3), repeats=make_repeats(4, concurrency=3), asked=12)
    figure = make_figure("ttft_s", (0.2,) * 12, "request")
    assert values_by_repeat(result, figure) == [0.2] * 4


def test_values_of_another_tool_are_shared_out_over_its_repeats() -> None:
    requests = make_figure("ttft_s", (1, 2, 3, 10, 20, 30), "request")
    result = make_result(make_cell(concurrency=3), requests, make_figure(NAME, (5, 6)))
    assert values_by_repeat(result, requests) == [2, 20]
    assert values_by_repeat(make_result(make_cell(), requests), requests) == [6.5]  # one run, as far as anybody knows


def test_requests_of_one_run_make_no_verdict() -> None:
    a, b = (make_run(make_result(make_cell(), make_figure("ttft_s", [value] * 200, "request"))) for value in (0.1, 0.2))
    (change,) = changes_of(compare(a, b))
    assert (change.verdict, change.count_a, change.count_b) == ("too few", 1, 1)


@pytest.mark.parametrize(
    ("changes", "is_paired"), [({}, True), ({"seed": 8}, False), ({"model": "other"}, False), ({"seed": None}, False)]
)
def test_only_the_same_prompts_are_pairs(changes: dict[str, Any], is_paired: bool) -> None:
    def side(step_s: float, **facts: Any) -> BenchRun:
        result = make_result(make_cell(), make_figure(NAME, (1.0, 2, 3, 4, 5, 6)), repeats=make_repeats(6, step_s=step_s))
        return make_run(result, **facts)

    (change,) = changes_of(compare(side(0.02), side(0.03, **changes)))
    assert change.is_paired is is_paired


# What is told first.


def test_what_differs_is_told_flag_by_flag() -> None:
    facts: dict[str, Any] = {"url": None, "model": "m", "engine": "vllm"}
    a = BenchSubject(
        **facts, engine_version="0.26.0", flags=("serve", "m", "--max-num-seqs", "4", "--eager", "--x=1", "--gpu", "-1")
    )
    b = BenchSubject(
        **facts, engine_version="0.27.0", flags=("serve", "m", "--max-num-seqs", "8", "--x", "1", "--gpu", "-1"), plan_id="p"
    )
    assert differences_of_subjects(a, b) == (
        Difference("engine's version", "0.26.0", "0.27.0"),
        Difference("plan", None, "p"),
        Difference("--max-num-seqs", "4", "8"),
        Difference("--eager", "set", "not set"),
    )


def test_doubts_are_told_and_those_of_all_cells_once() -> None:
    a = make_run(*(make_result(make_cell(size), make_figure(NAME, (1, 2, 3)), counted_by=("usage",)) for size in (1, 2)))
    b = make_run(
        make_result(make_cell(1, content="prose"), make_figure(NAME, (1, 2, 3)), counted_by=("chunks",)),
        make_result(make_cell(2), make_figure(NAME, (1, 2, 3)), counted_by=("chunks",), failed=1, warnings=("throttled",)),
        tool="llama-benchy",
    )
    comparison = compare(a, b)
    assert "tokens are counted by usage and by chunks" in comparison.warnings
    assert any("stoker and llama-benchy take times" in text for text in comparison.warnings)
    assert comparison.cells[0].warnings == (
        "other texts (code and prose): speculation and caches may like one of them more",
    )
    assert comparison.cells[1].warnings == ("B: 1 of 5 requests failed", "B: throttled")


def test_cells_are_matched_by_what_they_ask_and_the_rest_is_named() -> None:
    sizes_a, sizes_b = (512, 1024, 2048), (2050, 512, 9000)
    a, b = (
        make_run(*(make_result(make_cell(size), make_figure(NAME, (1, 2, 3))) for size in sizes))
        for sizes in (sizes_a, sizes_b)
    )
    comparison = compare(a, b)
    assert [cell.cell.prompt_tokens for cell in comparison.cells] == [512, 2048]
    assert comparison.cells[1].warnings == ("lengths are 2048 and 32 and 2050 and 32 tokens",)
    assert [cell.prompt_tokens for cell in comparison.only_a] == [1024]
    assert [cell.prompt_tokens for cell in comparison.only_b] == [9000]


def test_means_without_values_compare_by_size_alone() -> None:
    ours = make_side((100, 110, 120))
    theirs = make_run(make_result(make_cell(100), number_of(f"mean_{NAME}", "repeat", 121.0)))
    (change,) = changes_of(compare(theirs, ours))
    assert (change.verdict, change.p, change.low) == ("means", None, None)
    assert change.ratio == pytest.approx(110 / 121)


def test_accept_rates_of_other_tools_are_compared_too() -> None:
    a, b = (
        make_run(make_result(make_cell(), speculation=SpeculationSeen("x", None, None, None, rate, None)))
        for rate in (0.76, 0.52)
    )
    (change,) = changes_of(compare(a, b))
    assert (change.name, change.a, change.b, change.verdict) == ("accept_rate", 0.76, 0.52, "means")


def test_a_run_beside_itself_is_the_same_every_time() -> None:
    run = make_side((1.0, 2, 3, 4), (5.0, 6, 7, 9))
    assert compare(run, run) == compare(run, run)
    assert compare(make_run(), make_run()).cells == ()


def test_a_figure_of_nothing_is_not_divided_by() -> None:
    assert changes_of(compare(make_side((0.0, 0.0, 0.0)), make_side((1.0, 1.0, 1.0)))) == []
