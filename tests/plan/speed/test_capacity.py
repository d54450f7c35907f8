"""People who ask, wait and think: a simulation that gives the same every time, and sensible figures."""

from __future__ import annotations

from itertools import islice
from statistics import fmean

import pytest

from stoker.plan.speed.capacity import Habits, simulate, think_times
from stoker.plan.speed.catalog import find_shape
from stoker.plan.speed.cost import cost_s
from stoker.plan.speed.layout import plan_layout
from stoker.plan.speed.prediction import load_fit
from stoker.plan.speed.schedule import Burst, answer_lengths, burst_work
from stoker.plan.speed.speculation import Drafting
from stoker.plan.speed.work import Served, Step, step_terms

FIT = load_fit()


def served(name: str = "Qwen3.6-35B-A3B", quantisation: str = "FP8") -> Served:
    shape = find_shape(name)
    assert shape is not None
    return Served(shape, plan_layout(shape, quantisation, "vllm", None), "vllm")


def test_the_same_people_find_the_same() -> None:
    habits = Habits(users=8, think_s=20)
    assert simulate(served(), habits, FIT, seed=3) == simulate(served(), habits, FIT, seed=3)
    assert simulate(served(), habits, FIT, seed=3) != simulate(served(), habits, FIT, seed=4)


def test_thinking_takes_as_long_as_was_said() -> None:
    assert fmean(islice(think_times(20, 1), 5000)) == pytest.approx(20, rel=0.03)


def test_one_person_gets_the_rate_of_one_request() -> None:
    view = simulate(served(), Habits(users=1, think_s=30, prompt=1000, answer=500), FIT)
    alone = 1 / cost_s(step_terms(served(), Step(1, depth=1250)), FIT.factors)
    assert view.tok_s == pytest.approx(alone, rel=0.05)
    assert view.slow_tok_s <= view.tok_s
    assert 0 < view.ttft_s <= view.slow_ttft_s


def test_more_people_get_slower_answers_and_more_in_all() -> None:
    few, many = (simulate(served(), Habits(users=users, think_s=10), FIT) for users in (2, 32))
    assert many.tok_s < few.tok_s
    assert many.total_tok_s > few.total_tok_s
    assert few.busy < many.busy <= 1


def test_a_second_machine_makes_answers_faster() -> None:
    one, two = (simulate(served(), Habits(users=16, think_s=10, boxes=boxes), FIT) for boxes in (1, 2))
    assert two.tok_s > one.tok_s
    assert two.total_tok_s > one.total_tok_s


def test_drafts_make_one_persons_answers_faster() -> None:
    habits = Habits(users=1, think_s=10)
    assert simulate(served(), habits, FIT, Drafting("mtp", 3, 3.2)).tok_s > simulate(served(), habits, FIT).tok_s


def test_a_burst_gives_every_token_once() -> None:
    burst = Burst(requests=7, prompt=3000, answer=100)
    terms, tokens = burst_work(served(), burst)
    assert tokens == pytest.approx(700)
    assert cost_s(terms, FIT.factors) > 0


def test_while_prompts_are_read_the_rate_is_lower() -> None:
    rates = []
    for reads_prompts in (False, True):
        terms, tokens = burst_work(served(), Burst(requests=10, prompt=16_000, answer=256, reads_prompts=reads_prompts))
        rates.append(tokens / cost_s(terms, FIT.factors))
    assert rates[1] < 0.7 * rates[0]


def test_only_so_many_are_answered_at_once() -> None:
    free, bound = (burst_work(served(), Burst(requests=16, answer=64, most_at_once=most)) for most in (256, 4))
    assert free[1] == pytest.approx(bound[1])
    assert cost_s(bound[0], FIT.factors) > cost_s(free[0], FIT.factors)


@pytest.mark.parametrize("requests", [1, 2, 7, 20])
def test_answers_that_end_early_are_no_longer_than_was_asked(requests: int) -> None:
    lengths = answer_lengths(Burst(requests=requests, answer=1024, ends_early=True))
    assert len(lengths) == requests
    assert max(lengths) <= 1024
