"""What is usual of a ratio, and how far it strays."""

from __future__ import annotations

import math
import random

import pytest

from stoker.watch.band import FIRST_SLOTS, MEMORY, WINDOWS, Band, octaves, odds

EXPECTED = (0.30, 0.25, 0.22, 0.18)


def taught(rates: list[float]) -> Band:
    """A band that was taught some rates of a thousand drafts each."""
    band = Band(odds, EXPECTED)
    for rate in rates:
        band.learn(round(rate * 1000), 1000)
    return band


def test_the_centre_is_the_ratio_of_sums_and_not_the_mean_of_ratios() -> None:
    band = Band(odds, EXPECTED)
    band.learn(90, 100)
    band.learn(100, 900)
    assert band.ratio == pytest.approx(0.19)


def test_a_longer_window_strays_less_where_minutes_are_independent() -> None:
    chance = random.Random(1)
    band = taught([chance.gauss(0.5, 0.08) for _ in range(12000)])
    spreads = [band.spread(window) for window in WINDOWS]
    assert spreads == sorted(spreads, reverse=True)
    for window, spread in zip(WINDOWS, spreads, strict=True):
        assert spread == pytest.approx(0.32 / math.sqrt(window), rel=0.8)  # odds of a half: four times the rate's own


def test_minutes_that_are_alike_keep_the_spread_of_a_longer_window_wide() -> None:
    chance, rates = random.Random(2), []
    for _ in range(300):
        session = chance.gauss(0.5, 0.06)
        rates += [session + chance.gauss(0, 0.02) for _ in range(20)]
    band = taught(rates)
    assert band.spread(15) > 0.18  # independent minutes of the same spread would give 0.065


def test_what_looks_alike_at_first_is_not_yet_believed() -> None:
    band = taught([0.4] * FIRST_SLOTS)
    assert band.is_learnt
    assert all(band.spread(window) > expected / 2 for window, expected in zip(WINDOWS, EXPECTED, strict=True))


def test_old_slots_fade() -> None:
    band = taught([0.3] * MEMORY + [0.5] * MEMORY)
    assert 0.40 < band.ratio < 0.45


def test_what_was_learnt_survives_being_kept() -> None:
    chance = random.Random(3)
    band, again = taught([chance.gauss(0.35, 0.05) for _ in range(600)]), Band(odds, EXPECTED)
    again.restore(band.keep())
    assert (again.centre, again.is_learnt) == (band.centre, True)
    assert [again.spread(window) for window in WINDOWS] == [band.spread(window) for window in WINDOWS]


@pytest.mark.parametrize("kept", [(), (1.0,), (math.nan,) * 11, (-1.0,) * 11])
def test_numbers_that_no_band_kept_teach_nothing(kept: tuple[float, ...]) -> None:
    band = Band(odds, EXPECTED)
    band.restore(kept)
    assert not band.is_learnt
    assert band.ratio == 0.0


def test_doublings_have_a_value_where_nothing_was_read() -> None:
    assert octaves(0, 1023) == -10
    assert octaves(4095, 1023) == 2
