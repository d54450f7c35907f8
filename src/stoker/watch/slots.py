"""Gathers growth into slots: busy minutes with enough drafts in them to say something. Idle time makes none. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from stoker.watch.samples import Growth

SLOT_S = 60.0
LEAST_DRAFTED = 200  # a rate of fewer strays by more than 0.035 by chance alone


class Slot(NamedTuple):
    """What was drafted and accepted in a busy minute, and what was read and written meanwhile."""

    drafted: int
    accepted: int
    steps: int
    prompted: int
    generated: int

    def __add__(self, other: object) -> Slot:
        """Adds two up."""
        return Slot(*map(sum, zip(self, other, strict=True))) if isinstance(other, Slot) else NotImplemented


NOTHING = Slot(0, 0, 0, 0, 0)


def added(slots: Iterable[Slot]) -> Slot:
    """Returns the sums of some slots."""
    return Slot(*map(sum, zip(NOTHING, *slots, strict=True)))


class SlotMaker:
    """Makes slots of what is seen; what lies on both sides of an idle time may make one together."""

    def __init__(self) -> None:
        self._busy_s = 0.0
        self._slot = NOTHING

    def take(self, growth: Growth | None) -> Slot | None:
        """Returns a slot where one became whole; growth that is unknown ends the one under way."""
        if growth is None:
            self._busy_s, self._slot = 0.0, NOTHING
            return None
        if not growth.drafted or growth.accepted is None:
            return None
        seen = growth.drafted, growth.accepted, growth.steps or 0, growth.prompted or 0, growth.generated or 0
        self._busy_s, self._slot = self._busy_s + growth.took_s, self._slot + Slot(*seen)
        if self._busy_s < SLOT_S or self._slot.drafted < LEAST_DRAFTED:
            return None
        slot, self._busy_s, self._slot = self._slot, 0.0, NOTHING
        return slot
