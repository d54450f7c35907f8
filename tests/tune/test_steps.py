"""What a lookup's own repeats say of a step without drafts."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from bench_seen import make_repeat, make_request
from stoker.records import SpeculationSeen
from stoker.tune.steps import LEAST_REPEATS, Steps, base_step_s, read_steps

BASE_S, EACH_S = 0.0012, 0.0006
# 40 prompts of a real llama.cpp: of 255 tokens so many were accepted drafts, of so many draft tokens.
PROMPTS = [(0, 0), (16, 24), (121, 144), (29, 69), (104, 107)] * 8


def taken(base_s: float = BASE_S, each_s: float = EACH_S, noise: float = 0.0) -> list[Steps]:
    random = Random(1)
    return [
        Steps(((255 - accepted) * base_s + drafted * each_s) * (1 + random.gauss(0.0, noise)), 255 - accepted, drafted)
        for accepted, drafted in PROMPTS
    ]


def test_both_times_are_told_apart() -> None:
    assert base_step_s(taken()) == pytest.approx(BASE_S)
    assert base_step_s(taken(noise=0.03)) == pytest.approx(BASE_S, rel=0.02)


def test_off_and_a_lookup_that_finds_nothing_tell_the_same() -> None:
    plain = [Steps(255 * BASE_S, 255, 0)] * LEAST_REPEATS
    assert base_step_s(plain) == pytest.approx(BASE_S)
    assert base_step_s(plain[1:]) is None, "too few"


@pytest.mark.parametrize(
    "repeats",
    [taken(noise=0.3)[:LEAST_REPEATS], [Steps(255 * BASE_S, 100, 400)] * 20],
    ids=["noise", "each step drafts as much"],
)
def test_what_is_not_told_is_not_known(repeats: Sequence[Steps]) -> None:
    assert base_step_s(repeats) is None


def told(drafted: int | None, accepted: int | None) -> SpeculationSeen:
    return SpeculationSeen("counters", drafted, accepted, None, None, None)


def test_steps_are_tokens_after_the_first_less_those_that_were_drafts() -> None:
    repeats = (make_repeat(make_request(), speculation=told(40, 19)), make_repeat(make_request(), speculation=told(0, 0)))
    assert read_steps(repeats, (100.0, 50.0), drafts=True) == (Steps(0.99, 80, 40), Steps(1.98, 99, 0))
    assert read_steps(repeats, (100.0, 50.0), drafts=False) == (Steps(0.99, 99, 0), Steps(1.98, 99, 0))


@pytest.mark.parametrize("other", [None, told(None, None), told(200, 99)], ids=["silent", "no counts", "more than came"])
def test_a_repeat_whose_counts_are_missing_leaves_all_unknown(other: SpeculationSeen | None) -> None:
    repeats = (make_repeat(make_request(), speculation=told(40, 19)), make_repeat(make_request(), speculation=other))
    assert read_steps(repeats, (100.0, 50.0), drafts=True) == ()


def test_many_requests_at_once_share_their_steps_so_nothing_is_told() -> None:
    assert read_steps((make_repeat(make_request(), make_request()),), (100.0,), drafts=False) == ()
    assert read_steps((make_repeat(make_request()),) * 2, (100.0,), drafts=False) == (), "a rate is missing"
