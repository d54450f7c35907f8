"""Accept rates by content: ratios of sums over busy time."""

from __future__ import annotations

import pytest

from stoker.watch.contents import LEAST_DRAFTED, WINDOW_S, ContentRates
from stoker.watch.samples import Growth
from stoker.watch.slots import Slot


def growth(drafted: int | None, accepted: int | None, steps: int | None = 10, took_s: float = 15.0) -> Growth:
    return Growth(0.0, took_s, 100, 50, drafted, accepted, steps)


def test_rates_are_ratios_of_sums_and_not_means_of_ratios() -> None:
    rates = ContentRates()
    rates.take("code", growth(100, 90, 30))
    rates.take("code", growth(300, 30, 70))
    rates.take("prose", growth(100, 20, 40))
    code, prose = rates.views()
    assert (code.content, code.accept_rate, code.accept_length, code.draft_tokens) == ("code", 0.3, 2.2, 400)
    assert (prose.content, prose.accept_rate) == ("prose", 0.2)


def test_what_lies_back_fifteen_busy_minutes_counts_in_the_sums_alone() -> None:
    rates = ContentRates()
    rates.take("code", growth(1000, 1000, took_s=WINDOW_S / 2))
    for _ in range(2):
        rates.take("code", growth(100, 50, took_s=WINDOW_S / 2))
    assert rates.views()[0].accept_rate == 0.5
    assert rates.totals["code"].drafted == 1200


@pytest.mark.parametrize("idle", [growth(0, 0), growth(None, None), growth(5, None)])
def test_a_stretch_without_drafts_says_nothing(idle: Growth) -> None:
    rates = ContentRates()
    rates.take("code", idle)
    assert (rates.views(), dict(rates.totals)) == ((), {})


def test_a_handful_of_drafts_is_no_rate() -> None:
    rates = ContentRates()
    rates.take("code", growth(LEAST_DRAFTED - 1, 1))
    assert rates.views() == ()
    rates.take("code", growth(1, 1, None))
    assert rates.views()[0].draft_tokens == LEAST_DRAFTED
    assert rates.totals["code"] == Slot(LEAST_DRAFTED, 2, 10, 100, 200)
