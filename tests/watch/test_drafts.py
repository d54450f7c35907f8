"""Drafts that got worse, told from other work."""

from __future__ import annotations

import random

import pytest

from stoker.watch.engine import read_limits
from stoker.watch.slots import Slot
from stoker.watch.speculation import BELOW, DECAYED, DROPPED, OTHER_WORK, SpeculationCheck, Verdict

DRAFTED = 1500


class Service:
    """Slots of a made-up service, with a seed."""

    def __init__(self, seed: int = 1, has_low_rates: bool = False) -> None:
        self.check = SpeculationCheck(read_limits(), has_low_rates)
        self._chance = random.Random(seed)

    def work(self, slots: int, rate: float, read_per_written: float = 10.0, scatter: float = 0.04) -> list[Verdict]:
        """Plays busy minutes; returns what was said of them."""
        said = []
        for _ in range(slots):
            accepted = round(DRAFTED * min(1.0, max(0.0, self._chance.gauss(rate, scatter))))
            written = DRAFTED // 3 + accepted
            read = round(written * read_per_written * self._chance.uniform(0.7, 1.4))
            found = self.check.take(Slot(DRAFTED, accepted, DRAFTED // 3, read, written))
            said += [found] if found else []
        return said


@pytest.mark.parametrize("seed", range(5))
def test_a_drop_is_found_within_five_busy_minutes(seed: int) -> None:
    service = Service(seed)
    assert service.work(600, 0.35) == []
    said = service.work(5, 0.08)
    assert said[-1].id == DROPPED
    assert "0.35 is usual, and the kind of work is the same" in said[-1].why


@pytest.mark.parametrize("seed", range(5))
def test_a_drop_that_stays_above_any_fixed_floor_is_found(seed: int) -> None:
    service = Service(seed)
    service.work(600, 0.76)
    assert service.work(15, 0.30)[-1].id == DROPPED


def test_a_decay_over_sixteen_hours_is_found_before_half_of_it_is_lost() -> None:
    service = Service()
    service.work(2400, 0.35)
    said = [found for minute in range(960) for found in service.work(1, 0.35 * (1 - minute / 960))[:1] if minute < 480]
    assert said[0].id == DECAYED


def test_a_decay_does_not_teach_the_band_what_it_is() -> None:
    service = Service()
    service.work(1200, 0.35)
    before = service.check.band
    for minute in range(200):
        service.work(1, 0.35 * (1 - minute / 960))
    assert service.check.band == pytest.approx(before, abs=0.01)


def test_other_work_is_no_fault_of_the_draft() -> None:
    service = Service()
    service.work(600, 0.36, read_per_written=10)
    said = service.work(30, 0.15, read_per_written=0.3)
    assert {found.id for found in said} == {OTHER_WORK}
    assert "tokens are read for each one written" in said[0].why


def test_other_work_has_a_band_of_its_own_once_it_is_known() -> None:
    service = Service()
    service.work(600, 0.36, read_per_written=10)
    service.work(150, 0.15, read_per_written=0.3)
    assert service.work(200, 0.15, read_per_written=0.3) == []
    assert service.work(10, 0.04, read_per_written=0.3)[-1].id == DROPPED


def test_work_that_comes_back_finds_its_band_again() -> None:
    service = Service()
    service.work(600, 0.36, read_per_written=10)
    service.work(200, 0.15, read_per_written=0.3)
    assert service.work(120, 0.36, read_per_written=10) == []
    assert service.work(8, 0.10, read_per_written=10)[-1].id == DROPPED


def test_a_draft_that_was_never_good_is_told_by_the_floor_and_teaches_nothing() -> None:
    service = Service()
    said = service.work(200, 0.08, scatter=0.01)
    assert {found.id for found in said} == {BELOW}
    assert service.check.band is None


def test_low_rates_of_lookups_are_ordinary() -> None:
    service = Service(has_low_rates=True)
    assert service.work(300, 0.12, scatter=0.02) == []
    assert service.work(10, 0.02, scatter=0.005)[-1].id == DROPPED


def test_what_was_learnt_survives_a_restart_of_the_daemon() -> None:
    service, next_one = Service(), Service(seed=2)
    service.work(600, 0.35)
    next_one.check.restore(service.check.keep())
    assert next_one.work(5, 0.10)[-1].id == DROPPED


def test_a_new_engine_is_not_judged_by_the_former_one() -> None:
    service = Service()
    service.work(600, 0.35)
    service.work(60, 0.10)
    service.check.begin_launch()
    assert service.work(4, 0.35) == []


def test_a_month_of_scattered_sessions_says_nothing() -> None:
    service, chance = Service(), random.Random(9)
    said = []
    for _ in range(250):
        said += service.work(chance.randint(10, 60), chance.gauss(0.35, 0.04), scatter=0.06)
    assert said == []
