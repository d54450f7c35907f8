"""Which sizes are tried, which are left, and which one is kept."""

from __future__ import annotations

import math
from random import Random

import msgspec

from stoker.records import Way
from stoker.tune.choosing import State, choose, most_starts, next_way
from stoker.tune.families import Family, Size, plan_sizes
from stoker.tune.guessing import guess_all
from tune_samples import see, steady

WORLDS = 300


def sized(size: Size, value: float | None) -> Way:
    return msgspec.structs.replace(Way(), **{size: value})


def climb(size: Size, present: float, measure: dict[float, float], failing: float = math.inf) -> list[float]:
    """Returns the values that are tried, in their order; one from `failing` on does not start."""
    state = State((plan_sizes(size, present, 8),))
    way: Way | None = sized(size, present)
    tried = []
    while way is not None:
        value = float(getattr(way, size))
        tried.append(value)
        if value >= failing:
            state = msgspec.structs.replace(state, failed=state.failed | {way})
        else:
            state = msgspec.structs.replace(state, measured=(*state.measured, see(way, *steady(measure[value]))))
        way = next_way(state, guess_all(state))
    return tried


def test_no_more_requests_at_once_are_tried_than_come() -> None:
    assert [way.parallel for way in plan_sizes("parallel", 16, 8).ways] == [1, 2, 4, 8, 16]
    assert [way.graph_batch for way in plan_sizes("graph_batch", 16, 8).ways] == [1, 2, 4, 8, 16]


def test_what_the_engine_chose_itself_is_a_way_too() -> None:
    assert plan_sizes("batch_tokens", None, 8).ways[0] == Way()


def test_memory_goes_upwards_a_step_at_a_time() -> None:
    rates = {0.7: 50.0, 0.75: 60.0, 0.8: 70.0, 0.85: 80.0}
    assert climb("memory_share", 0.7, rates)[:3] == [0.7, 0.75, 0.8]


def test_beyond_a_size_that_did_not_work_nothing_is_tried() -> None:
    rates = {0.7: 50.0, 0.75: 60.0}
    assert climb("memory_share", 0.7, rates, failing=0.75) == [0.7, 0.75]
    tried = climb("batch_tokens", 2048, dict.fromkeys((512, 1024, 2048, 4096, 8192, 16384), 50.0), failing=8192)
    assert len([value for value in tried if value >= 8192]) <= 2


def test_a_machine_where_no_size_matters_is_left_as_it_is() -> None:
    state = State((plan_sizes("parallel", 16, 16),), tuple(see(Way(parallel=one), *steady(50.0)) for one in (16, 8, 1)))
    best, why = choose(state, Way(parallel=16))
    assert best.way == Way(parallel=16)
    assert why == "nothing that was tried is faster"


def test_a_size_that_is_faster_by_chance_is_not_taken() -> None:
    noisy = see(Way(batch_tokens=4096), 70.0, 40.0, 66.0, 45.0)
    present = see(Way(batch_tokens=2048), 50.0, 52.0, 48.0, 50.0)
    best, why = choose(State((plan_sizes("batch_tokens", 2048, 8),), (present, noisy)), present.way)
    assert best == present
    assert "no difference between batch_tokens 4096 and batch_tokens 2048" in why


def test_more_memory_is_not_given_for_what_a_start_alone_may_change() -> None:
    state = State((plan_sizes("memory_share", 0.5, 8),), (see(Way(memory_share=0.5), *steady(50.0)),))
    for rate, chosen in ((53.0, 0.5), (60.0, 0.55)):
        more = msgspec.structs.replace(state, measured=(*state.measured, see(Way(memory_share=0.55), *steady(rate))))
        best, why = choose(more, Way(memory_share=0.5))
        assert best.way == Way(memory_share=chosen)
        assert ("no memory is given for that" in why) == (chosen == 0.5)


def made_rates(random: Random, family: Family) -> dict[Way, float]:
    """A machine as they are: more helps up to a point, and beyond it costs a little."""
    point, width, fall = random.uniform(7.0, 12.0), random.uniform(0.5, 1.5), random.uniform(0.0, 0.03)
    beyond = {way: math.log2(way.batch_tokens or 1) - point for way in family.ways}
    return {way: 100 / (1 + math.exp(-far / width)) * math.exp(-fall * max(0.0, far)) for way, far in beyond.items()}


def test_in_machines_whose_truth_is_known_a_size_within_3_percent_is_found_with_half_of_the_starts() -> None:
    random, missed = Random(3), 0
    for _ in range(WORLDS):
        family = plan_sizes("batch_tokens", 2048, 8)
        rates, state = made_rates(random, family), State((family,))
        way: Way | None = Way(batch_tokens=2048)
        while way is not None:
            state = msgspec.structs.replace(state, measured=(*state.measured, see(way, *steady(rates[way]))))
            way = next_way(state, guess_all(state))
        assert len(state.measured) <= most_starts(state)
        missed += rates[choose(state, Way(batch_tokens=2048))[0].way] < 0.97 * max(rates.values())
    assert missed <= 0.03 * WORLDS
