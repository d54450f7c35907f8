"""Drafting: what each number of draft tokens gives, against sweeps that others measured."""

from __future__ import annotations

import msgspec
import pytest

from stoker.plan.speed.catalog import find_shape
from stoker.plan.speed.cost import cost_s
from stoker.plan.speed.curve import CurvePoint, drafting_curve, rates_from_mean, verify_step_s
from stoker.plan.speed.layout import plan_layout
from stoker.plan.speed.prediction import load_fit, predict_row
from stoker.plan.speed.speculation import (
    Drafting,
    draft_terms,
    expected_length,
    falling_rates,
    first_rate_for,
    usual_rates,
)
from stoker.plan.speed.work import Served, Step, step_terms

SWEEP = {2: 67.5, 3: 71.2, 4: 80.0, 5: 76.9, 6: 72.2}  # Gemma 4 26B-A4B in FP8 with gemma4_mtp on one GB10
ACCEPTED = {2: 0.87, 3: 0.84, 4: 0.76, 5: 0.66, 6: 0.56}
PLAIN_TOK_S = 35.0


def served(name: str, quantisation: str, engine: str = "vllm") -> Served:
    shape = find_shape(name)
    assert shape is not None
    return Served(shape, plan_layout(shape, quantisation, engine, None), engine)


def best(curve: tuple[CurvePoint, ...]) -> int:
    return max(curve, key=lambda point: point.decode_tok_s).draft_tokens


def test_the_length_of_published_rates_is_the_published_length() -> None:
    assert expected_length([0.91, 0.90, 0.89, 0.85]) == pytest.approx(1 + 4 * 0.76, rel=0.02)


def test_a_mean_rate_and_its_length_are_two_words_for_one_thing() -> None:
    for accept_rate in (0.1, 0.56, 0.9):
        assert expected_length(rates_from_mean(accept_rate, 6)) == pytest.approx(1 + 6 * accept_rate, rel=1e-6)
    assert first_rate_for(1.0, 4) == pytest.approx(0, abs=1e-9)


def test_one_run_at_six_draft_tokens_finds_the_best_number_of_the_sweep() -> None:
    curve = drafting_curve(served("Gemma4-26B-A4B", "FP8-Dynamic"), "mtp", rates_from_mean(ACCEPTED[6], 6), load_fit(),
                           measured_plain=PLAIN_TOK_S)  # fmt: skip
    assert curve[0].decode_tok_s == PLAIN_TOK_S
    assert SWEEP[best(curve)] >= 0.95 * max(SWEEP.values())


@pytest.mark.parametrize("draft_tokens", sorted(SWEEP))
def test_each_point_of_the_sweep_is_within_its_interval_or_close_below(draft_tokens: int) -> None:
    row = {"model": "Gemma4-26B-A4B", "quant": "FP8-Dynamic", "engine": "vLLM", "spec_method": "gemma4_mtp",
           "num_spec_tokens": str(draft_tokens), "accept_rate_or_len": str(ACCEPTED[draft_tokens])}  # fmt: skip
    found = predict_row(row, load_fit())
    assert not isinstance(found, str)
    assert found.low_tok_s <= SWEEP[draft_tokens] <= found.high_tok_s


PUBLISHED = [
    # 001: Mistral Small 4 NVFP4 on SGLang with EAGLE
    ({"model": "Mistral-Small-4-119B-2603-NVFP4", "quant": "NVFP4", "engine": "SGLang", "spec_method": "EAGLE",
      "num_spec_tokens": "4", "accept_rate_or_len": "2.5-3.4 (length)"}, 35, 41),
    # 004: NEXTN and NGRAM with SGLang, MTP with vLLM, one request
    ({"model": "Qwen3.6-27B", "quant": "FP8", "engine": "SGLang", "spec_method": "NGRAM",
      "accept_rate_or_len": "len 1.65-1.85", "prompt_tokens": "512"}, 12.2, 13.4),
    ({"model": "Qwen3.6-27B", "quant": "NVFP4", "engine": "vLLM", "spec_method": "MTP", "num_spec_tokens": "3",
      "accept_rate_or_len": "len 2.5-3.5", "prompt_tokens": "512"}, 21.6, 27.4),
    ({"model": "Qwen3.6-27B", "quant": "FP8", "engine": "SGLang", "spec_method": "NEXTN", "num_spec_tokens": "5",
      "accept_rate_or_len": "0.60-0.70"}, 22.6, 22.6),
]  # fmt: skip


@pytest.mark.parametrize(("row", "least", "most"), PUBLISHED)
def test_published_rates_with_drafts_touch_their_intervals(row: dict[str, str], least: float, most: float) -> None:
    found = predict_row(row, load_fit())
    assert not isinstance(found, str)
    assert found.low_tok_s <= most
    assert least <= found.high_tok_s


def test_prose_is_drafted_worse_than_code() -> None:
    rates = load_fit().first_rates
    code, prose = (expected_length(usual_rates("mtp", 4, content, rates)) for content in ("code", "prose"))
    assert prose < code


def test_more_tokens_than_are_accepted_cost_more_than_they_give() -> None:
    dense = drafting_curve(served("Qwen3.6-27B", "FP8"), "mtp", falling_rates(0.3, 8), load_fit())
    assert best(dense) < 4


def test_verifying_costs_a_mixture_more_than_a_dense_model() -> None:
    rates = [1.0] * 4
    gain = {}
    for name in ("Qwen3.6-27B", "Qwen3.6-35B-A3B"):
        curve = drafting_curve(served(name, "FP8"), "mtp", rates, load_fit())
        gain[name] = curve[-1].decode_tok_s / curve[0].decode_tok_s
    assert gain["Qwen3.6-35B-A3B"] < 0.8 * gain["Qwen3.6-27B"]


def test_a_slower_baseline_makes_every_point_slower_and_a_faster_one_faster() -> None:
    what, rates = served("Qwen3.6-27B", "FP8"), [0.8, 0.7]
    slow, usual, fast = (
        [point.decode_tok_s for point in drafting_curve(what, "mtp", rates, load_fit(), measured_plain=plain)]
        for plain in (5.0, None, 9.5)
    )
    assert all(one < two < three for one, two, three in zip(slow, usual, fast, strict=True))


def drafted(name: str | None, requests: int = 1) -> list[float]:
    """The rates with 1 to 4 draft tokens of a model of its own, each right four times in five."""
    draft = served(name, "FP8") if name else None
    curve = drafting_curve(served("Qwen3-32B", "FP8"), "draft", [0.8] * 4, load_fit(), requests, draft=draft)
    return [point.decode_tok_s for point in curve[1:]]


def test_a_larger_draft_model_costs_more_for_each_token_and_is_worth_fewer_of_them() -> None:
    small, middle, large = (drafted(name) for name in ("Qwen3-0.6B", "Qwen3-4B", "Qwen3-14B"))
    assert all(one > two > three for one, two, three in zip(small, middle, large, strict=True))
    assert small.index(max(small)) == 3  # each further token pays
    assert large.index(max(large)) < 3


def test_a_draft_models_steps_take_what_the_same_steps_of_it_alone_take() -> None:
    target, draft, fit = served("Qwen3-32B", "FP8"), served("Qwen3-4B", "FP8"), load_fit()
    alone_s, step = cost_s(step_terms(draft, Step(1)), fit.factors), Step(1, tokens=4.0)
    own_s = cost_s(draft_terms(target, Drafting("draft", 3, 2.5, model=draft), step), fit.factors)
    assert own_s == pytest.approx(3 * (alone_s + fit.factors["step.drafted"]))
    both_s = verify_step_s(target, Drafting("draft", 3, 2.5, model=draft), fit)
    assert both_s == pytest.approx(cost_s(step_terms(target, step), fit.factors) + own_s)


def test_a_draft_model_is_shared_by_as_many_boxes_as_its_target() -> None:
    target, draft = msgspec.structs.replace(served("Qwen3-32B", "FP8"), boxes=2), served("Qwen3-4B", "FP8")
    read = [
        draft_terms(one, Drafting("draft", 1, 1.8, model=draft), Step(1)) for one in (served("Qwen3-32B", "FP8"), target)
    ]
    alone, shared = (sum(amount for factors, amount in terms.items() if factors[0] == "gb") for terms in read)
    assert shared == pytest.approx(alone / 2)
