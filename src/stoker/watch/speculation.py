"""Tells drafts that are worse than they were from those that never were better, and both from other work. Pure.

The accept rate of the last 4, 8, 15 and 60 busy minutes is held against the band that was learnt for this service, method
and kind of work. What kind of work it is, is told by how many tokens are read for each one written: engines count both,
and nothing of a text is looked at. A rate that falls while that stays is the draft's fault; one that falls with it is
another kind of work, which gets a band of its own. More: docs/watching.md.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from stoker.watch.band import WINDOWS, Band, octaves, odds
from stoker.watch.slots import NOTHING, SLOT_S, Slot, added

DROPPED, DECAYED, BELOW, OTHER_WORK = (
    "accept-rate-dropped", "accept-rate-decayed", "sglang-speculation-degraded", "speculation-other-work",
)  # fmt: skip
# Spreads: what lies so far out is said, by the length of the window, goes on to be said, and is not learnt. There are most
# short windows in a month, so that chance has most tries with them.
OUT_OF_BAND, STAYS_OUT, SUSPECT = {4: 5.0, 8: 4.5, 15: 4.0, 60: 4.0}, 3.0, 2.0
IN_BAND = 2.0
# How far the share that counts as a fall lies between that of a drop and that of a decay: a longer window tells less of one
# from chance. With half for fifteen minutes too, 0.35 to 0.16 took 42 minutes to tell, as long as the published rule.
LENIENCE = {4: 0.0, 8: 0.25, 15: 0.5, 60: 1.0}
STAYS_LOW = 1.1  # a share is left again above so much of it
# A decay must not teach the band what it is: what is learnt lies back four busy hours, in which nothing was found.
QUARANTINE_SLOTS = 240
FLOOR_WINDOW = 15
SAME_WORK, OTHER = 1.5, 3.0  # spreads of the kind of work
# What spreads are taken for before they were seen: of logarithms of odds, and of doublings.
EXPECTED_RATE, EXPECTED_WORK = (0.30, 0.25, 0.22, 0.18), (1.2, 1.0, 0.8, 0.6)
LEAST_OCTAVE = 1.0  # tokens read for each one written, twice or half of what they were
MOST_KINDS = 6


class Limits(NamedTuple):
    """The numbers of the table of alerts: shares of the usual rate, and the floor where none is known yet."""

    dropped: float
    decayed: float
    floor: float


class Verdict(NamedTuple):
    """What is wrong, by an alert's id, why we think so, and for how long it has been so at least."""

    id: str
    why: str
    lasted_s: float = 0.0


class Kind:
    """A kind of work: what its drafts are worth, and how much is read for each token written."""

    def __init__(self) -> None:
        self.rate = Band(odds, EXPECTED_RATE)
        self.work = Band(octaves, EXPECTED_WORK)

    def learn(self, slot: Slot) -> None:
        """Takes a slot in which all was well."""
        self.rate.learn(slot.accepted, slot.drafted)
        self.work.learn(slot.prompted, slot.generated)

    def far(self, seen: Slot) -> float:
        """Returns how far from this kind's work that lies, in octaves."""
        return abs(self.work.strays(seen.prompted, seen.generated))


class SpeculationCheck:
    """Judges one service under one method. `has_low_rates`: drafts are looked up in the prompt, so low is ordinary."""

    def __init__(self, limits: Limits, has_low_rates: bool = False) -> None:
        self._limits = limits
        self._has_low_rates = has_low_rates
        self._kinds = [Kind()]
        self._now = self._kinds[0]
        self._slots: deque[Slot] = deque(maxlen=WINDOWS[-1])
        self._unlearnt: deque[Slot] = deque()
        self.verdict: Verdict | None = None

    def take(self, slot: Slot) -> Verdict | None:
        """Takes a slot; returns what is wrong, which stands until a next slot says otherwise."""
        self._slots.append(slot)
        self._go_to_nearest_kind()
        self.verdict = self._judge()
        if self.verdict is None:
            self._learn(slot)
        elif self.verdict.id == OTHER_WORK:
            self._now.learn(slot)
        else:
            self._unlearnt.clear()
        return self.verdict

    def seen(self, window: int) -> Slot:
        """Returns the sums of the last slots, at most so many."""
        return added(list(self._slots)[-window:]) if self._slots else NOTHING

    @property
    def band(self) -> tuple[float, float] | None:
        """The rates between which fifteen minutes lie when all is well; None until it is learnt."""
        rate = self._now.rate
        if not rate.is_learnt:
            return None
        reach = IN_BAND * rate.spread(FLOOR_WINDOW)
        return _share(rate.centre - reach), _share(rate.centre + reach)

    def _judge(self) -> Verdict | None:
        if not self._now.rate.is_learnt:
            return self._judge_unlearnt()
        for window in WINDOWS:
            if len(self._slots) >= window and (found := self._judge_window(window)):
                return found
        return None

    def _judge_unlearnt(self) -> Verdict | None:
        seen = self.seen(FLOOR_WINDOW)
        rate = seen.accepted / seen.drafted if seen.drafted else 0.0
        known = [kind.rate.ratio for kind in self._kinds if kind.rate.is_learnt]
        if known:
            why = f"{rate:.2f} of the drafts are accepted, and {max(known):.2f} were of the work before"
            return Verdict(OTHER_WORK, why) if rate < self._limits.decayed * max(known) else None
        if self._has_low_rates or len(self._slots) < FLOOR_WINDOW or rate >= self._limits.floor:
            return None
        return Verdict(
            BELOW, f"{rate:.2f} of the drafts were accepted in {FLOOR_WINDOW} busy minutes; what is usual is unknown"
        )

    def _judge_window(self, window: int) -> Verdict | None:
        band, seen, is_said = self._now.rate, self.seen(window), self._faulty is not None
        share = self._limits.dropped + LENIENCE[window] * (self._limits.decayed - self._limits.dropped)
        share, out = (share * STAYS_LOW, STAYS_OUT) if is_said else (share, OUT_OF_BAND[window])
        is_low = seen.accepted < share * band.ratio * seen.drafted
        if not is_low or -band.strays(seen.accepted, seen.drafted) < out * band.spread(window):
            return None
        return self._name(window, seen)

    @property
    def _faulty(self) -> str | None:
        """What is said of the draft now: one fault keeps its name, whichever window sees it."""
        return self.verdict.id if self.verdict is not None and self.verdict.id in (DROPPED, DECAYED) else None

    def _name(self, window: int, seen: Slot) -> Verdict | None:
        """Says whose fault a fallen rate is; None as long as that cannot be told."""
        # The later half tells soonest that the work may be another: the earlier may still be of the former.
        far, lately = self._now.far(seen), self._now.far(self.seen(window // 2))
        spread = self._now.work.spread(window)
        why = (
            f"{seen.accepted / seen.drafted:.2f} of the drafts were accepted in {window} busy minutes,"
            f" {self._now.rate.ratio:.2f} is usual"
        )
        can_tell = window != WINDOWS[0] and self._faulty is None
        if can_tell and far > max(LEAST_OCTAVE, OTHER * spread):
            usual, is_new = self._now, self._change_kind(seen)
            lasted_s = window * SLOT_S if window >= FLOOR_WINDOW else 0.0  # a few minutes of it are not worth a word
            return Verdict(OTHER_WORK, f"{why}; {_say_work(usual, seen)}", lasted_s) if is_new else None
        is_unsure = max(far, lately) > max(LEAST_OCTAVE, SAME_WORK * spread)
        if is_unsure and window != WINDOWS[-1] and self._faulty is None:
            return None
        fault = self._faulty or (DECAYED if window == WINDOWS[-1] else DROPPED)
        return Verdict(fault, f"{why}, and the kind of work is the same", window * SLOT_S)

    def _change_kind(self, seen: Slot) -> bool:
        """Goes on with another kind of work; tells whether it is a new one."""
        near = self._nearest_kind(seen)
        is_new = near is self._now or near.far(seen) > LEAST_OCTAVE
        self._forget_recent()
        if not is_new:
            self._now = near
            return False
        if len(self._kinds) >= MOST_KINDS:  # the one that was seen least makes room
            self._kinds.remove(min(self._kinds, key=lambda kind: kind.rate.count))
        self._now = Kind()
        self._kinds.append(self._now)
        return True

    def _go_to_nearest_kind(self) -> None:
        if len(self._kinds) == 1 or len(self._slots) < WINDOWS[0]:
            return
        seen = self.seen(FLOOR_WINDOW)
        near, learnt = self._nearest_kind(seen), [kind for kind in self._kinds if kind.rate.is_learnt]
        known = min(learnt, key=lambda kind: kind.far(seen), default=self._now)
        if not self._now.rate.is_learnt and known.far(seen) < LEAST_OCTAVE:  # it was no other work after all
            self._kinds.remove(self._now)
            near = known
        elif near.far(seen) + LEAST_OCTAVE >= self._now.far(seen):
            return
        self._now = near
        self._forget_recent()

    def _nearest_kind(self, seen: Slot) -> Kind:
        return min((kind for kind in self._kinds if kind.work.count), key=lambda kind: kind.far(seen), default=self._now)

    def begin_launch(self) -> None:
        """A new engine has its drafts loaded anew: what was seen of the former one does not count against it."""
        self._slots.clear()

    def _forget_recent(self) -> None:
        """What was seen of one kind of work says nothing of another."""
        self._slots.clear()
        self._unlearnt.clear()

    def _learn(self, slot: Slot) -> None:
        if self._now.rate.is_learnt and self._is_suspect():
            return
        self._unlearnt.append(slot)
        while self._unlearnt and (len(self._unlearnt) > QUARANTINE_SLOTS or not self._now.rate.is_learnt):
            self._now.learn(self._unlearnt.popleft())

    def _is_suspect(self) -> bool:
        """Tells whether the last hour is so low that it may be the beginning of something."""
        seen, band = self.seen(WINDOWS[-1]), self._now.rate
        return -band.strays(seen.accepted, seen.drafted) > SUSPECT * band.spread(WINDOWS[-1])

    def keep(self) -> list[tuple[float, ...]]:
        """Returns what was learnt, two rows of numbers for each kind of work."""
        return [row for kind in self._kinds for row in (kind.rate.keep(), kind.work.keep())]

    def restore(self, kept: Sequence[Sequence[float]]) -> None:
        """Takes what was kept."""
        kinds = [Kind() for _ in range(len(kept) // 2)]
        for kind, rate, work in zip(kinds, kept[::2], kept[1::2], strict=False):
            kind.rate.restore(rate)
            kind.work.restore(work)
        self._kinds = [kind for kind in kinds if kind.rate.count] or [Kind()]
        self._now = max(self._kinds, key=lambda kind: kind.rate.count)


def _share(odds_log: float) -> float:
    return 1 / (1 + math.exp(-odds_log))


def _say_work(usual: Kind, seen: Slot) -> str:
    now = (seen.prompted + 1) / (seen.generated + 1)
    return f"the work is another: {now:.1f} tokens are read for each one written, {2**usual.work.centre:.1f} were usual"
