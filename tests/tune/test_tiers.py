"""Numbers of draft tokens by how many requests run: when a table is made of them, and what is expected of it."""

from __future__ import annotations

import json
import math

import msgspec
import pytest

from stoker.engines import find
from stoker.records import Seen, Sighting, Way
from stoker.tune.choosing import State, choose, next_way
from stoker.tune.families import OFF, plan_families
from stoker.tune.guessing import guess_all
from stoker.tune.tiers import count_at, with_tiers
from tune_samples import steady

VLLM, SGLANG = find("vllm"), find("sglang")
LENGTHS = tuple(1 + 0.8 * (1 - 0.8**count) / 0.2 for count in range(1, 7))  # each position is right four times in five
SIX = Way("mtp", 6)


def seen(*rates: float, lengths: tuple[float, ...] = ()) -> tuple[Seen, ...]:
    """A rate for each load."""
    return tuple(Seen("code", steady(rate), lengths, "positions" if lengths else "usual") for rate in rates)


def rates_of(count: int, each_s: float) -> float:
    """The rate with so many draft tokens, where a step takes 20 ms and each draft token more."""
    return (LENGTHS[count - 1] if count else 1.0) / (0.02 + each_s * count)


def state_at(*each_s: float, tiered: bool = True) -> State:
    """What is known after off and six draft tokens, at 1 and 16 requests."""
    off = Sighting(OFF, seen(*(rates_of(0, one) for one in each_s)))
    six = Sighting(SIX, seen(*(rates_of(6, one) for one in each_s), lengths=LENGTHS))
    families = plan_families(VLLM, None, has_draft_layers=True)[:2]
    return State(families, (off, six), loads=(1, 16), tiered=VLLM.drafting["draft_tiers"] if tiered else frozenset())


def tables(state: State) -> list[Way]:
    return [way for way in state.ways if way.draft_tiers]


def test_where_drafts_cost_more_with_many_requests_a_table_drafts_less_there() -> None:
    [table] = tables(with_tiers(state_at(0.001, 0.02), 64))
    assert table.draft_tiers is not None
    [(first, end, few), (begin, last, many)] = table.draft_tiers
    assert (first, end, begin, last) == (1, 4, 5, 64)
    assert few > many == 0
    assert table.draft_tokens == few
    assert [count_at(table, load) for load in (1, 4, 5, 64)] == [few, few, 0, 0]


def test_one_number_that_is_best_for_all_loads_needs_no_table() -> None:
    assert tables(with_tiers(state_at(0.001, 0.001), 64)) == []


def test_sglang_is_told_the_same_table_as_tiers_that_it_chooses_by_the_requests() -> None:
    off, six = state_at(0.001, 0.02).measured
    families = plan_families(SGLANG, "eagle3", has_draft_layers=False)
    six = msgspec.structs.replace(six, way=Way("eagle3", 6))
    state = State(families, (off, six), loads=(1, 16), tiered=SGLANG.drafting["draft_tiers"])
    [table] = tables(with_tiers(state, 64))
    told = SGLANG.speculate(table, "/draft")
    tiers = {first: entry["candidate_steps"] for first, entry in json.loads(str(told["draft_tiers"])).items()}
    assert tiers == {"1": [table.draft_tokens], "5": [0]}
    assert told["--speculative-num-steps"] == table.draft_tokens


def test_an_engine_that_takes_no_table_gets_none() -> None:
    assert tables(with_tiers(state_at(0.001, 0.02, tiered=False), 64)) == []


def test_a_table_is_expected_to_give_at_each_load_what_its_number_gives() -> None:
    state = with_tiers(state_at(0.001, 0.02), 64)
    [table] = tables(state)
    few = table.draft_tokens or 0
    expected = (math.log(rates_of(few, 0.001)) + math.log(rates_of(0, 0.02))) / 2
    assert guess_all(state)[table].mean == pytest.approx(expected, abs=0.01)
    assert next_way(state, guess_all(state)) == table


def test_a_table_that_was_never_started_gives_way_to_a_better_one() -> None:
    before = with_tiers(state_at(0.001, 0.02), 64)
    [old] = tables(before)
    three = Sighting(Way("mtp", 3), seen(500.0, 1.0, lengths=LENGTHS[:3]))
    after = with_tiers(msgspec.structs.replace(before, measured=(*before.measured, three)), 64)
    [new] = tables(after)
    assert new != old
    assert count_at(new, 1) == 3


def test_a_table_that_is_faster_at_both_loads_together_is_chosen_and_kept_among_the_ways() -> None:
    state = with_tiers(state_at(0.001, 0.02), 64)
    [table] = tables(state)
    found = Sighting(table, seen(rates_of(table.draft_tokens or 0, 0.001), rates_of(0, 0.02)))
    done = with_tiers(msgspec.structs.replace(state, measured=(*state.measured, found)), 64)
    assert table in done.ways
    assert choose(done, OFF)[0].way == table
