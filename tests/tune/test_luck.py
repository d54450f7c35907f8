"""How much of a measured rate is its start's own luck, by what the other starts say of it."""

from __future__ import annotations

import math

import msgspec
import pytest

from stoker.engines import find
from stoker.records import Sighting, Way
from stoker.tune.choosing import State, choose, next_pair
from stoker.tune.families import OFF, plan_families
from stoker.tune.luck import BASE_SD, START_SD, knows_luck, luck_of
from stoker.tune.ratios import together
from tune_samples import see, steady

DRAFT = plan_families(find("vllm"), "draft", has_draft_layers=False)
PLAIN_S, EACH_S = 1 / 50, 1 / 400
THREE, FIVE, EIGHT = (Way("draft", count) for count in (3, 5, 8))


def started(way: Way, luck: float = 1.0, gain: float = 0.8) -> Sighting:
    """Returns a way on a machine where steps lie on a line, measured so many times as fast as it is."""
    count = way.draft_tokens or 0
    lengths = tuple(1 + sum(gain**place for place in range(1, tokens + 1)) for tokens in range(1, count + 1))
    rate = luck * (lengths[-1] if lengths else 1.0) / (PLAIN_S + EACH_S * count)
    return see(way, *steady(rate), lengths=lengths, lengths_by="positions" if lengths else "usual")


def test_what_lies_on_the_line_had_no_luck() -> None:
    found = luck_of(DRAFT, [started(way) for way in (OFF, THREE, FIVE, EIGHT)])
    assert set(found) == {THREE, FIVE, EIGHT}
    assert max(map(abs, found.values())) < 1e-9


@pytest.mark.parametrize(("luck", "sign"), [(1.1, 1), (0.9, -1)])
def test_what_was_faster_than_the_others_say_had_luck(luck: float, sign: int) -> None:
    found = luck_of(DRAFT, [started(OFF), started(THREE), started(FIVE, luck), started(EIGHT)])
    assert 0.02 < sign * found[FIVE] < abs(math.log(luck)), "a part of it: the line may bend as well"
    assert all(sign * found[way] < 0 for way in (THREE, EIGHT)), "and the others a little less than they seem to"


def test_two_starts_of_a_way_are_believed_more_than_one() -> None:
    lucky = started(FIVE, 1.1)
    others = [started(OFF), started(THREE), started(EIGHT)]
    twice = msgspec.structs.replace(lucky, start_logs=(0.0, 0.0))
    assert 0 < luck_of(DRAFT, [*others, twice])[FIVE] < luck_of(DRAFT, [*others, lucky])[FIVE]


def test_nothing_is_said_where_two_starts_or_other_ones_than_chains_tell() -> None:
    assert luck_of(DRAFT, [started(OFF), started(THREE, 1.1), started(EIGHT)]) == {}, "two lie on a line"
    assert luck_of(DRAFT, [started(Way("ngram", count), 1.1 if count == 8 else 1.0) for count in (3, 5, 8)]) == {}


def test_what_drafting_costs_at_all_is_not_taken_for_luck() -> None:
    """Off is far from the line where the first draft token costs more than each further one, as in small models."""
    dear = [msgspec.structs.replace(started(OFF), seen=(see(OFF, *steady(90.0)).seen))]
    found = luck_of(DRAFT, [*dear, started(THREE), started(FIVE), started(EIGHT)])
    assert max(map(abs, found.values())) < 1e-9


def test_a_time_that_the_line_would_have_below_none_changes_no_sign() -> None:
    one, two, eight = (see(Way("draft", count), *steady(rate), lengths=(2.0,) * count, lengths_by="positions")
                       for count, rate in ((1, 4000.0), (2, 100.0), (8, 5.0)))  # fmt: skip
    assert all(math.isfinite(luck) for luck in luck_of(DRAFT, [one, two, eight]).values())


def test_a_lucky_start_is_not_chosen_over_the_one_that_the_others_bear_out() -> None:
    """A real vLLM (docs/measured/tuning.md, code 3): side by side 8 tokens were 3.4 % faster than 7."""
    found = [
        see(OFF, *steady(149.75)), see(THREE, *steady(246.56), lengths=(1.93, 2.74, 3.49), lengths_by="positions"),
        see(Way("draft", 7), *steady(328.49), lengths=(1.93, 2.74, 3.49, 4.13, 4.71, 5.22, 5.68), lengths_by="positions"),
        see(EIGHT, *steady(329.43), lengths=(1.93, 2.74, 3.49, 4.13, 4.71, 5.22, 5.68, 6.15), lengths_by="positions"),
    ]  # fmt: skip
    assert choose(State(DRAFT, tuple(found)), THREE)[0].way == EIGHT
    assert luck_of(DRAFT, found)[Way("draft", 7)] == pytest.approx(0.010, abs=0.002)


def test_it_is_said_why_what_was_measured_as_faster_is_not_taken() -> None:
    three, seven, eight = (started(Way("draft", count), luck, gain=0.95) for count, luck in ((3, 1.0), (7, 1.06), (8, 1.0)))
    best, why = choose(State(DRAFT, (started(OFF), three, seven, eight)), OFF)
    assert best.way == EIGHT
    assert why.endswith("; draft 7 was measured 2.9% faster, more than the starts beside it bear out")
    _, why = choose(State(DRAFT, (started(OFF), three, eight)), OFF)
    assert "faster, more" not in why


LLAMACPP = plan_families(find("llamacpp"), "draft", has_draft_layers=False)
LOOKUP = Way("ngram", 8, lookup_min=6)
BASE_S = 1 / 850


def told(way: Way, rate: float, machine: float = 1.0) -> Sighting:
    """Returns a way whose start told how fast the machine was, as a multiple of what it was for off."""
    lengths: tuple[float, ...] = (1.3,) if way.draft_tokens else ()
    return see(way, *steady(rate), base_step_s=BASE_S / machine, lengths=lengths, lengths_by="mean" if lengths else "usual")


@pytest.mark.parametrize("machine", [0.94, 1.0, 1.05])
def test_a_lookups_steps_without_drafts_tell_how_fast_the_machine_was(machine: float) -> None:
    found = luck_of(LLAMACPP, [told(OFF, 850.0), told(LOOKUP, 900.0, machine)])
    assert set(found) == {LOOKUP}
    assert found[LOOKUP] == pytest.approx(math.log(machine) * START_SD**2 / (START_SD**2 + BASE_SD**2))


def test_nothing_is_said_of_a_lookup_where_it_or_off_does_not_tell() -> None:
    silent = see(LOOKUP, *steady(900.0))
    assert luck_of(LLAMACPP, [told(OFF, 850.0), silent]) == {}
    assert luck_of(LLAMACPP, [see(OFF, *steady(850.0)), told(LOOKUP, 900.0, 0.9)]) == {}
    assert not knows_luck(silent)
    assert not knows_luck(see(THREE, *steady(50.0), base_step_s=BASE_S)), "another draft adds to each step"


def test_a_lookup_that_was_measured_in_a_slow_minute_is_chosen_all_the_same() -> None:
    """A real llama.cpp: 857.6 tok/s for 849.9, and side by side 898 for 826."""
    state = State(LLAMACPP, (told(OFF, 849.9), told(LOOKUP, 857.6, 0.93)))
    assert choose(state, OFF)[0].way == LOOKUP
    assert choose(State(LLAMACPP, (told(OFF, 849.9), told(LOOKUP, 857.6))), OFF)[0].way == OFF


def test_two_that_told_their_luck_are_not_started_again() -> None:
    near = (told(OFF, 850.0), told(LOOKUP, 870.0))
    assert next_pair(State(LLAMACPP, near), OFF) == ()
    assert next_pair(State(LLAMACPP, (near[0], see(LOOKUP, *steady(870.0)))), OFF) == (LOOKUP, OFF)


def test_two_starts_of_a_lookup_tell_the_mean_of_both_machines() -> None:
    twice = together(told(LOOKUP, 900.0, 0.9), told(LOOKUP, 1100.0, 1.1))
    assert twice.seen[0].base_step_s == pytest.approx(BASE_S / math.sqrt(0.99))
    assert together(told(LOOKUP, 900.0), see(LOOKUP, *steady(900.0))).seen[0].base_step_s is None
