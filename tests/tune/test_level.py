"""Ways that were asked in turn with what runs: whatever the machine did meanwhile falls out."""

from __future__ import annotations

import math
from random import Random

import msgspec
import pytest

from stoker.engines import find
from stoker.records import Seen, Sighting, Way
from stoker.tune.choosing import State, choose, next_pair
from stoker.tune.families import OFF, plan_families
from stoker.tune.level import level
from stoker.tune.luck import luck_of
from stoker.tune.ratios import compare
from tune_samples import see, steady

FOUR, SIX = Way("eagle3", 4), Way("eagle3", 6)
FAMILIES = plan_families(find("vllm"), "eagle3", has_draft_layers=False)
ROUNDS = 40


class Drifting:
    """A machine whose speed wanders by a tenth from second to second, and was seen to halve within three minutes."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._log = 0.0

    def asked(self, rate: float) -> float:
        """Returns the rate that the next request is measured with."""
        self._log += self._random.gauss(-0.01, 0.05)
        return rate * math.exp(self._log)


def tried_beside(machine: Drifting, rate: float, present: float, before: tuple[float, ...]) -> Seen:
    """Returns a way as it is measured beside what runs, on a machine that goes on to drift."""
    both = [(machine.asked(rate), machine.asked(present)) for _ in range(ROUNDS)]
    return level(Seen("code", tuple(one for one, _ in both), base_step_s=0.1), before, [now for _, now in both])


def test_a_machine_that_drifts_does_not_change_what_is_compared() -> None:
    machine = Drifting(1)
    before = tuple(machine.asked(1000.0) for _ in range(3 * ROUNDS))
    off, six = (tried_beside(machine, rate, 1000.0, before) for rate in (500.0, 1100.0))
    four = Sighting(FOUR, (Seen("code", before),), is_level=True)
    one, other = (Sighting(way, (seen,), is_level=True) for way, seen in ((OFF, off), (SIX, six)))
    assert compare(other, four).ratio == pytest.approx(1.1, rel=0.03)
    assert compare(other, four).is_faster
    assert compare(other, one).ratio == pytest.approx(2.2, rel=0.04)
    assert off.base_step_s is None, "what the steps without drafts say is not taken off once more"
    best, _ = choose(State(FAMILIES, (four, one, other)), FOUR)
    assert best.way == SIX


def test_the_same_machine_misleads_who_measures_one_after_the_other() -> None:
    machine = Drifting(1)
    four, six = (see(way, *(machine.asked(rate) for _ in range(ROUNDS))) for way, rate in ((FOUR, 1000.0), (SIX, 1100.0)))
    assert compare(six, four).ratio < 1


def test_only_as_many_repeats_count_as_all_have() -> None:
    found = level(Seen("code", (4.0, 6.0, 9.0)), (10.0, 10.0, 10.0), (20.0, 10.0))
    assert found.rates == (2.0, 6.0)


def test_what_is_level_is_neither_started_again_nor_held_for_lucky() -> None:
    ways = [see(OFF, *steady(50.0)), see(Way("ngram", 8), *steady(51.0))]
    alone, beside = (State(FAMILIES, tuple(levelled(one, flag) for one in ways)) for flag in (False, True))
    assert next_pair(alone, OFF) != ()
    assert next_pair(beside, OFF) == ()
    chain = [see(Way("eagle3", count), *steady(rate)) for count, rate in ((2, 90.0), (4, 130.0), (6, 120.0))]
    assert luck_of(FAMILIES, [levelled(one, is_level=False) for one in chain])
    assert luck_of(FAMILIES, [levelled(one, is_level=True) for one in chain]) == {}


def levelled(one: Sighting, is_level: bool) -> Sighting:
    """Returns a way as it was asked in turn with what runs, or not."""
    return msgspec.structs.replace(one, is_level=is_level)
