"""How much of a measured rate is its start's own luck, by what the other starts say of it."""

from __future__ import annotations

import math

import msgspec
import pytest

from stoker.engines import find
from stoker.records import Sighting, Way
from stoker.tune.choosing import State, choose
from stoker.tune.families import OFF, plan_families
from stoker.tune.luck import luck_of
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
def test_what_was_faster_than_its_neighbours_say_had_luck(luck: float, sign: int) -> None:
    found = luck_of(DRAFT, [started(OFF), started(THREE), started(FIVE, luck), started(EIGHT)])
    assert 0.02 < sign * found[FIVE] < abs(math.log(luck)), "a part of it: the machine's line may bend as well"


def test_two_starts_of_a_way_are_believed_more_than_one() -> None:
    lucky = started(FIVE, 1.1)
    others = [started(OFF), started(THREE), started(EIGHT)]
    twice = msgspec.structs.replace(lucky, start_logs=(0.0, 0.0))
    assert 0 < luck_of(DRAFT, [*others, twice])[FIVE] < luck_of(DRAFT, [*others, lucky])[FIVE]


def test_nothing_is_said_of_what_no_other_start_tells_of() -> None:
    assert luck_of(DRAFT, [started(THREE), started(EIGHT)]) == {}, "without off nobody knows what a token costs"
    assert luck_of(DRAFT, [started(OFF), started(EIGHT)]) == {}
    lookups = [started(OFF), started(Way("ngram", 3)), started(Way("ngram", 8))]
    assert set(luck_of(DRAFT, lookups)) == {Way("ngram", 3)}, "what a lookup finds may end before more tokens"


def test_a_far_neighbour_says_less_than_a_near_one() -> None:
    seven = Way("draft", 7)
    near = luck_of(DRAFT, [started(OFF), started(seven), started(EIGHT, 1.1)])[EIGHT]
    far = luck_of(DRAFT, [started(OFF), started(Way("draft", 1)), started(EIGHT, 1.1)])[EIGHT]
    assert 0 < far < near / 3


def test_a_lucky_start_is_not_chosen_over_the_one_that_its_neighbours_bear_out() -> None:
    """A real vLLM (docs/measured/tuning.md, code 3): side by side 8 tokens were 3.4 % faster than 7."""
    found = [
        see(OFF, *steady(149.75)), see(THREE, *steady(246.56), lengths=(1.93, 2.74, 3.49), lengths_by="positions"),
        see(Way("draft", 7), *steady(328.49), lengths=(1.93, 2.74, 3.49, 4.13, 4.71, 5.22, 5.68), lengths_by="positions"),
        see(EIGHT, *steady(329.43), lengths=(1.93, 2.74, 3.49, 4.13, 4.71, 5.22, 5.68, 6.15), lengths_by="positions"),
    ]  # fmt: skip
    assert choose(State(DRAFT, tuple(found)), THREE)[0].way == EIGHT
    assert luck_of(DRAFT, found)[Way("draft", 7)] == pytest.approx(0.015, abs=0.003)


def test_it_is_said_why_what_was_measured_as_faster_is_not_taken() -> None:
    six, seven, eight = (started(Way("draft", count), luck, gain=0.95) for count, luck in ((6, 1.0), (7, 1.06), (8, 1.0)))
    best, why = choose(State(DRAFT, (started(OFF), six, seven, eight)), OFF)
    assert best.way == EIGHT
    assert why.endswith("; draft 7 was measured 2.9% faster, more than the starts beside it bear out")
    _, why = choose(State(DRAFT, (started(OFF), six, eight)), OFF)
    assert "faster, more" not in why
