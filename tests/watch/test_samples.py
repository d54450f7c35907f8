"""What lies between two looks."""

from __future__ import annotations

from stoker.watch.samples import EngineSample, Growth, grown
from stoker.watch.slots import SlotMaker


def sample(at_s: float, drafted: int | None, accepted: int | None, launch: int = 1, generated: int = 0) -> EngineSample:
    """A look at an engine."""
    return EngineSample(at_s, launch, drafted=drafted, accepted=accepted, generated=generated, prompted=0, steps=0)


def test_growth_is_what_each_counter_grew() -> None:
    growth = grown(sample(0, 100, 30), sample(15, 400, 130, generated=9))
    assert growth == Growth(15, 15, generated=9, prompted=0, drafted=300, accepted=100, steps=0)


def test_counters_that_fell_began_anew() -> None:
    assert grown(sample(0, 100, 30), sample(15, 90, 40)) is None


def test_another_launch_is_another_account_however_high_it_counts() -> None:
    assert grown(sample(0, 100, 30), sample(15, 400, 130, launch=2)) is None


def test_more_accepted_than_proposed_cannot_be() -> None:
    assert grown(sample(0, 100, 30), sample(15, 110, 90)) is None


def test_what_an_engine_does_not_tell_stays_unknown() -> None:
    growth = grown(sample(0, None, None), sample(15, None, None, generated=50))
    assert growth is not None
    assert (growth.drafted, growth.generated) == (None, 50)


def test_slots_are_made_of_busy_time_alone() -> None:
    maker = SlotMaker()
    busy, idle = Growth(0, 15, 150, 0, 100, 30, 50), Growth(0, 15, 0, 0, 0, 0, 0)
    assert [maker.take(one) for one in (busy, idle, busy, idle, idle, busy)] == [None] * 6
    slot = maker.take(busy)
    assert slot is not None
    assert (slot.drafted, slot.accepted) == (400, 120)


def test_a_restart_ends_the_slot_under_way() -> None:
    maker = SlotMaker()
    busy = Growth(0, 30, 150, 0, 300, 90, 50)
    assert maker.take(busy) is None
    assert maker.take(None) is None
    assert maker.take(busy) is None
    assert maker.take(busy) is not None
