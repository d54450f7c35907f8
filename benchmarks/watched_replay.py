"""Plays what was recorded of a real engine: as it was, or on, for as long as is asked for.

As it was: one recording after another, so that what changes is a draft, the work or a launch. On: sessions, each a stretch
of a recording from a place that a seed draws, with the nights, pauses, restarts and gaps of a load. How much of its worth a
draft has left is the share of looks that are those of the good one; the others are those of the useless. What grew between
two looks is always what was recorded for one.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from benchmarks.watched_load import CHAT, CODE, DAY_S, PROSE, STEP_S, Load, Trouble, next_opening
from benchmarks.watched_recording import COUNTERS, KINDS, RECORDED
from stoker.watch.samples import EngineSample

USELESS = "code-useless"
# The work of a load, by the recording of it; anything else is prose that is drawn freely.
RECORDING_OF = {CODE: "code", CHAT: "chat", PROSE: "prose"}
OTHER = "free-prose"
SESSION_LOOKS = 40, 240  # ten minutes to an hour
Looked = Iterator[tuple[EngineSample, float | None]]


class Look(NamedTuple):
    """A launch's number, and by how much each of `COUNTERS` grew since the look before."""

    launch: int
    grew: tuple[int, ...]


def has_recordings() -> bool:
    """Tells whether everything was recorded here."""
    return all((RECORDED / f"{name}.csv").exists() for name in KINDS)


@cache
def read_looks(name: str) -> tuple[Look, ...]:
    """Returns what was recorded."""
    with (RECORDED / f"{name}.csv").open() as file:
        rows = [(int(row["launch"]), [int(row[counter]) for counter in COUNTERS]) for row in csv.DictReader(file)]
    looks, before, last = [], [0] * len(COUNTERS), 0
    for launch, totals in rows:
        before = before if launch == last else [0] * len(COUNTERS)
        looks.append(Look(launch, tuple(now - was for now, was in zip(totals, before, strict=True))))
        before, last = totals, launch
    return tuple(looks)


class _Engine:
    """The counters of an engine, and the gauge that another one would show of its last interval with drafts."""

    def __init__(self) -> None:
        self.launch = 0
        self.gauge: float | None = None
        self.begin()

    def begin(self) -> None:
        self.launch, self._totals, self.gauge = self.launch + 1, [0] * len(COUNTERS), None

    def count(self, grew: Sequence[int]) -> None:
        self._totals = [total + more for total, more in zip(self._totals, grew, strict=True)]
        one = dict(zip(COUNTERS, grew, strict=True))
        if one["drafted"]:
            self.gauge = one["accepted"] / one["drafted"]

    def look(self, at_s: float) -> tuple[EngineSample, float | None]:
        generated, prompted, drafted, accepted, steps = work = tuple(self._totals)
        sample = EngineSample(at_s, self.launch, 0, 0, 0, generated, prompted, drafted, accepted, steps, work)
        return sample, self.gauge


def play_as_recorded(names: Sequence[str], is_other_launch: bool) -> Looked:
    """Yields the looks of recordings, one after another; with another launch for each, or as one that goes on."""
    engine, at_s = _Engine(), 0.0
    for number, name in enumerate(names):
        launch = read_looks(name)[0].launch
        if number and is_other_launch:
            engine.begin()
        for look in read_looks(name):
            if look.launch != launch:
                engine.begin()
                launch = look.launch
            engine.count(look.grew)
            yield engine.look(at_s)
            at_s += STEP_S


def play_on(load: Load, trouble: Trouble, days: float, seed: int) -> Looked:
    """Yields the looks of days that are made of what was recorded."""
    chance, engine = random.Random(seed), _Engine()
    sessions = _Sessions(load, chance)
    restarts = list(trouble.restarts_s)
    for number in range(int(days * DAY_S / STEP_S)):
        at_s = number * STEP_S
        if restarts and at_s >= restarts[0]:
            restarts.pop(0)
            engine.begin()
        name = sessions.work_at(at_s)
        if name and at_s >= trouble.other_from_s:
            name = RECORDING_OF.get(trouble.other, OTHER)
        if name:
            engine.count(sessions.next_look(USELESS if chance.random() > trouble.factor(at_s) else name).grew)
        if not any(begin <= at_s < end for begin, end in trouble.gaps_s):
            yield engine.look(at_s)


class _Sessions:
    """Who asks when, and of what recording; a session goes on where it is in each recording it is taken from."""

    def __init__(self, load: Load, chance: random.Random) -> None:
        self._load, self._chance = load, chance
        self._begins_s = self._ends_s = -1.0
        self._name, self._place = "", 0

    def work_at(self, at_s: float) -> str:
        """Returns the recording of the session's work; empty in a pause or a night."""
        if at_s >= self._ends_s:
            self._begins_s = next_opening(self._load, at_s + self._chance.expovariate(1 / self._load.pause_s))
            self._ends_s = self._begins_s + STEP_S * self._chance.randint(*SESSION_LOOKS)
            works, shares = zip(*self._load.works, strict=True)
            self._name = RECORDING_OF[self._chance.choices(works, shares)[0]]
            self._place = self._chance.randrange(len(read_looks("code")))
        return self._name if at_s >= self._begins_s else ""

    def next_look(self, name: str) -> Look:
        """Returns the next one of a recording."""
        self._place += 1
        looks = read_looks(name)
        return looks[self._place % len(looks)]
