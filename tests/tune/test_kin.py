"""What is expected of trees and of further lookup lengths, and which of them are started."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.engines import find
from stoker.records import Seen, Sighting, Way
from stoker.tune.choosing import State, choose, most_starts, next_scout, next_way
from stoker.tune.families import OFF, plan_families
from stoker.tune.guessing import guess_all
from stoker.tune.kin import distance, guess_tree
from tune_samples import see, steady

SGLANG = plan_families(find("sglang"), "eagle3", has_draft_layers=False)
VLLM = plan_families(find("vllm"), None, has_draft_layers=False)
TREE = Way("eagle3", 15, draft_steps=5, draft_topk=4)
CHAIN = (1.7, 2.2, 2.5, 2.7, 2.8, 2.9)


def chain_of_six(rate: float) -> Sighting:
    return see(Way("eagle3", 6), *steady(rate), lengths=CHAIN, lengths_by="mean")


def known(*more: Sighting, chain: float = 60.0) -> State:
    """Off at 30 tok/s, a chain of six, n-grams that find nothing, and what else was measured."""
    eight = see(Way("ngram", 8), *steady(28.0), lengths=(1.01,) * 8, lengths_by="mean")
    return State(SGLANG, (see(OFF, *steady(30.0)), chain_of_six(chain), eight, *more))


def test_sglang_has_trees_what_it_adapts_itself_and_further_lookup_lengths() -> None:
    ways = {way for family in SGLANG for way in family.ways}
    assert {TREE, Way("eagle3", draft_adaptive=True), Way("ngram", 8, lookup_max=6), Way("eagle3", 3)} <= ways
    assert Way("eagle3", 15, draft_steps=3, draft_topk=2) not in ways, "such a tree holds 10"


def test_families_are_called_by_what_people_say() -> None:
    assert [one.name for one in SGLANG] == ["off", "eagle3", "trees", "adaptive", "ngram", "lookups", "lookups"]
    assert [one.name for one in plan_families(find("llamacpp"), "draft", has_draft_layers=False)] == [
        "off", "draft", "ngram", "lookups", "lookups",
    ]  # fmt: skip


def test_vllm_and_llama_cpp_have_no_trees() -> None:
    for engine in ("vllm", "llamacpp"):
        families = plan_families(find(engine), "draft", has_draft_layers=True)
        assert not [way for family in families for way in family.ways if way.draft_steps or way.draft_adaptive]


def test_no_tree_is_started_before_the_chain_and_none_where_the_chain_does_not_pay() -> None:
    state, seen = State(SGLANG), []
    while (way := next_scout(state)) is not None:
        seen.append(way)
        state = msgspec.structs.replace(state, measured=(*state.measured, see(way, *steady(30.0))))
    assert seen == [OFF, Way("eagle3", 6), Way("ngram", 8)]
    bad = see(Way("eagle3", 6), *steady(12.0), lengths=(1.02,) * 6, lengths_by="mean")
    hopeless = State(SGLANG, (see(OFF, *steady(30.0)), bad, see(Way("ngram", 8), *steady(20.0), lengths=(1.0,) * 8)))
    way = next_way(hopeless, guess_all(hopeless))
    assert way is None or way.draft_steps is None


def test_a_good_chain_makes_trees_worth_a_start_and_a_bad_tree_takes_that_from_those_like_it() -> None:
    guesses = guess_all(known())
    first = next_way(known(), guesses)
    assert first is not None
    assert first.draft_steps or first.draft_adaptive
    slow = known(see(TREE, *steady(30.0), lengths=(2.5,), lengths_by="mean"))
    after = guess_all(slow)
    like = msgspec.structs.replace(TREE, draft_tokens=31)
    assert after[like].mean < guesses[like].mean
    far = max((way for way in guesses if way.draft_steps), key=lambda way: distance(way, TREE))
    assert abs(after[far].mean - guesses[far].mean) < abs(after[like].mean - guesses[like].mean)


def test_a_tree_that_is_faster_is_chosen() -> None:
    state = known(see(TREE, *steady(75.0), lengths=(3.6,), lengths_by="mean"))
    assert choose(state, OFF)[0].way == TREE


def test_few_starts_for_all_of_sglangs_ways() -> None:
    state = known()
    while (way := next_way(state, guess_all(state))) is not None:
        state = msgspec.structs.replace(state, measured=(*state.measured, see(way, *steady(45.0), lengths=(2.5,))))
    assert len(state.measured) <= most_starts(state)
    assert 2 * (len(state.measured) + 1) <= len(state.ways) + 1


@given(steps=st.integers(1, 8), topk=st.integers(1, 8), tokens=st.integers(1, 40), rate=st.floats(5.0, 90.0))
def test_a_tree_gives_at_most_its_steps_and_one(steps: int, topk: int, tokens: int, rate: float) -> None:
    plain, six = Seen("code", steady(30.0)), Seen("code", steady(rate), CHAIN, "mean")
    way = Way("eagle3", tokens, draft_steps=steps, draft_topk=topk)
    guess = guess_tree(way, plain, [(6, six)])
    assert math.exp(guess.mean) <= 30.0 * (steps + 1) * 1.001
    assert guess.sd >= 0.12


def test_one_branch_is_expected_to_be_what_the_chain_is() -> None:
    plain, six = Seen("code", steady(30.0)), Seen("code", steady(60.0), CHAIN, "mean")
    guess = guess_tree(Way("eagle3", 6, draft_steps=6, draft_topk=1), plain, [(6, six)])
    assert math.exp(guess.mean) == pytest.approx(60.0, rel=0.001)


def test_a_further_lookup_length_is_started_only_where_lookup_finds_something() -> None:
    off = see(OFF, *steady(30.0))
    good = see(Way("ngram", 8), *steady(45.0), lengths=tuple(1 + 0.25 * one for one in range(1, 9)), lengths_by="positions")
    state = State(VLLM, (off, good))
    guesses = guess_all(state)
    assert Way("ngram", 8, lookup_min=2, lookup_max=8) in guesses
    assert next_way(state, guesses) is not None
    nothing = see(Way("ngram", 8), *steady(20.0), lengths=(1.001,) * 8, lengths_by="positions")
    empty = State(VLLM, (off, nothing))
    assert next_way(empty, guess_all(empty)) is None


def test_the_lookup_most_like_another_tells_of_it() -> None:
    off = see(OFF, *steady(30.0))
    lengths = tuple(1 + 0.2 * one for one in range(1, 9))
    far = see(Way("ngram", 8), *steady(30.0), lengths=lengths, lengths_by="positions")
    near = see(Way("ngram", 8, lookup_min=2, lookup_max=8), *steady(60.0), lengths=lengths, lengths_by="positions")
    guesses = guess_all(State(VLLM, (off, far, near)))
    assert math.exp(guesses[Way("ngram", 8, lookup_min=3, lookup_max=8)].mean) == pytest.approx(60.0, rel=0.1)


def test_a_longer_match_costs_less_where_short_ones_draft_in_vain() -> None:
    off, families = see(OFF, *steady(560.0)), plan_families(find("llamacpp"), None, has_draft_layers=False)
    own = see(Way("ngram"), *steady(550.0))

    def guess(length: float) -> tuple[float, float]:
        three = see(Way("ngram", 32, lookup_min=3), *steady(340.0), lengths=(length,) * 32, lengths_by="positions")
        found = guess_all(State(families, (off, own, three)))[Way("ngram", 32, lookup_min=6)]
        return math.exp(found.mean), math.exp(found.mean + 1.28 * found.sd)

    middle, high = guess(1.2)
    assert 340 < middle < 560 < 600 < high
    assert guess(1.0)[1] < 560, "what finds nothing is never faster than off"


def test_llama_cpps_lookup_of_three_tells_of_six_and_nothing_is_guessed_of_its_own() -> None:
    families = plan_families(find("llamacpp"), None, has_draft_layers=False)
    three = see(Way("ngram", 32, lookup_min=3), *steady(60.0), lengths=(1.5,) * 32, lengths_by="positions")
    state = State(families, (see(OFF, *steady(30.0)), see(Way("ngram"), *steady(31.0)), three))
    guesses = guess_all(state)
    assert set(guesses) == {way for family in families for way in family.ways} - {one.way for one in state.measured}
    unknown = State(families, (see(OFF, *steady(30.0)), three))
    assert Way("ngram") not in guess_all(unknown)
