"""The curve from one start with many draft tokens, and how sure it is."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.plan.speed.catalog import find_shape
from stoker.plan.speed.curve import drafting_curve, rates_from_mean
from stoker.plan.speed.layout import plan_layout
from stoker.plan.speed.prediction import load_fit
from stoker.plan.speed.work import Served
from stoker.records import Seen, Way
from stoker.tune.choosing import State, next_way
from stoker.tune.curve import guess_rate
from stoker.tune.families import OFF, Family
from stoker.tune.guessing import guess_all
from stoker.tune.ratios import mean_log
from stoker.tune.reading import lengths_from_mean
from tune_samples import GEMMA, OFF_RATE, World, see, steady

MTP = Family(tuple(Way("mtp", count) for count in range(1, 7)))
PLAIN = Seen("code", steady(OFF_RATE))


def scouted() -> State:
    """What is known of the published sweep after two starts: without drafts, and with six draft tokens."""
    tok_s, accept_rate = GEMMA[6]
    six = see(Way("mtp", 6), *steady(tok_s), lengths=lengths_from_mean(accept_rate, 6), lengths_by="mean")
    return State((Family((OFF,), None), MTP), (see(OFF, *steady(OFF_RATE)), six))


def test_the_published_sweeps_best_is_chosen_from_its_row_of_six() -> None:
    guesses = guess_all(scouted())
    assert next_way(scouted(), guesses) == Way("mtp", 4)
    assert max(GEMMA[count][0] for count in GEMMA) == GEMMA[4][0]


def test_every_row_of_the_published_sweep_lies_in_its_band() -> None:
    guesses = guess_all(scouted())
    for count in (2, 3, 4, 5):
        band = guesses[Way("mtp", count)].band
        assert (band.low_tok_s or 0.0) <= GEMMA[count][0] <= (band.high_tok_s or 0.0), count


def test_the_accept_rate_of_six_and_the_plain_rate_alone_predict_a_setting_within_a_twentieth_of_the_best() -> None:
    shape = find_shape("Gemma4-26B-A4B")
    assert shape is not None
    served = Served(shape, plan_layout(shape, "fp8", "vllm", None), "vllm")
    curve = drafting_curve(served, "mtp", rates_from_mean(GEMMA[6][1], 6), load_fit(), measured_plain=OFF_RATE)
    best = max(curve, key=lambda point: point.decode_tok_s).draft_tokens
    assert abs(GEMMA[best][0] / GEMMA[4][0] - 1) < 0.05


def test_a_measured_neighbour_pins_the_curve_there() -> None:
    far, near = (lengths_from_mean(0.56, 6), lengths_from_mean(0.84, 3))
    measured = [(3, Seen("code", steady(71.2), near, "mean")), (6, Seen("code", steady(72.2), far, "mean"))]
    assert guess_rate(4, "mtp", PLAIN, measured).sd < guess_rate(4, "mtp", PLAIN, measured[1:]).sd


def test_without_any_counter_the_usual_rates_are_taken_and_the_band_is_wide() -> None:
    known = guess_rate(3, "draft", PLAIN, [(8, Seen("code", steady(50.0), lengths_from_mean(0.5, 8), "positions"))])
    blind = guess_rate(3, "draft", PLAIN, [(8, Seen("code", steady(50.0)))])
    assert blind.sd > 1.5 * known.sd
    assert math.isfinite(blind.mean)


def guess_step_ms(count: int, *measured_ms: tuple[int, float]) -> list[float]:
    """The least, the likely and the most milliseconds of a step, where one without drafts takes 2; each draft is right."""
    family = [(tokens, Seen("code", (1e3 * (1 + tokens) / ms,) * 2, tuple(range(2, tokens + 2)), "positions"))
              for tokens, ms in measured_ms]  # fmt: skip
    band = guess_rate(count, "eagle3", Seen("code", (500.0, 500.0)), family).band
    return [round(1e3 * (1 + count) / (rate or math.inf), 2) for rate in (band.high_tok_s, band.tok_s, band.low_tok_s)]


def test_that_one_drafts_at_all_may_cost_more_than_how_many() -> None:
    least, likely, most = guess_step_ms(1, (4, 4.0), (6, 4.0))
    assert 2.5 < likely < 4.0, "between the line from a step without drafts and one through both"
    assert least < 2.5, "it may be the one"
    assert most > 4.0, "or the other"
    assert guess_step_ms(1, (4, 4.0))[1] == 2.5, "one number alone tells nothing of it"


def test_where_every_draft_costs_the_same_both_lines_are_one() -> None:
    assert guess_step_ms(1, (4, 4.0), (6, 5.0)) == guess_step_ms(1, (4, 4.0))
    assert guess_step_ms(1, (4, 4.0), (6, 9.0))[1] == 2.5, "nor is a step with drafts faster than one without"
    assert guess_step_ms(5, (4, 4.0), (6, 4.0))[1] == 4.0, "what lies between is told by both"


def test_a_single_repeat_is_not_taken_for_certain() -> None:
    lengths = lengths_from_mean(0.5, 8)
    one, five = (guess_rate(4, "draft", PLAIN, [(8, Seen("code", rates, lengths, "positions"))])
                 for rates in ((50.0,), steady(50.0)))  # fmt: skip
    assert one.sd > five.sd


def test_further_tokens_of_a_lookup_cost_less_and_give_less_than_those_before() -> None:
    """Of llama.cpp's demo, as docs/measured/tuning.md has it: off, 8 and 16 tokens after matches of 6, 8 and 32 after 3."""
    plain = Seen("code", steady(895.0))
    eight = [(8, Seen("code", steady(984.0), (1.684,) * 8, "mean"))]
    sixteen = guess_rate(16, "ngram", plain, eight)
    assert math.exp(sixteen.mean) == pytest.approx(969.0, rel=0.05)
    assert 0.02 < sixteen.sd < 0.12, "narrow enough to spare a start"
    longer = guess_rate(32, "ngram", plain, eight)
    assert math.exp(longer.mean) == pytest.approx(880.0, rel=0.06)
    assert longer.sd > sixteen.sd
    three = guess_rate(8, "ngram", plain, [(32, Seen("code", steady(610.0), (1.987,) * 32, "mean"))])
    assert abs(math.log(874.0) - three.mean) < 1.5 * three.sd


def test_what_a_lookup_finds_is_believed_where_positions_were_counted() -> None:
    lengths = tuple(1 + 0.2 * one for one in range(1, 9))
    known, meant = ([(8, Seen("code", steady(60.0), lengths, by))] for by in ("positions", "mean"))
    assert guess_rate(4, "ngram", PLAIN, known).mean < guess_rate(4, "ngram", PLAIN, meant).mean
    assert guess_rate(4, "ngram", PLAIN, known).sd < guess_rate(4, "ngram", PLAIN, meant).sd


RATES = st.lists(st.floats(0.05, 0.99), min_size=8, max_size=8).map(lambda rates: tuple(sorted(rates, reverse=True)))


@given(RATES, st.floats(0.0, 0.02), st.integers(1, 7))
def test_the_curve_is_exact_where_each_draft_token_costs_as_much_as_the_one_before(
    rates: tuple[float, ...], each_s: float, count: int
) -> None:
    world = World(rates, 0.02, each_s, 0.0, 1.0, 0.0)
    lengths = tuple(world.length(one) for one in range(1, 9))
    plain, eight = Seen("code", (50.0,)), Seen("code", (world.tok_s(Way("draft", 8)),), lengths, "positions")
    assert guess_rate(count, "draft", plain, [(8, eight)]).mean == pytest.approx(math.log(world.tok_s(Way("draft", count))))


@given(RATES, st.floats(0.0, 0.02), st.floats(0.0, 0.02), st.floats(0.3, 3.0), st.integers(1, 7))
def test_no_guess_leaves_what_its_neighbours_steps_allow(
    rates: tuple[float, ...], each_s: float, begin_s: float, curved: float, count: int
) -> None:
    world = World(rates, 0.02, each_s, begin_s, curved, 0.0)
    lengths = tuple(world.length(one) for one in range(1, 9))
    eight = Seen("code", (world.tok_s(Way("draft", 8)),), lengths, "positions")
    guess = guess_rate(count, "draft", Seen("code", (50.0,)), [(8, eight)])
    fastest, slowest = world.length(count) / 0.02, world.length(count) / (world.length(8) / math.exp(mean_log(eight.rates)))
    assert math.log(slowest) - 1e-9 <= guess.mean <= math.log(fastest) + 1e-9
