"""Sweeps all ways of a service side by side: each runs as a service of its own, and all are asked the same prompt in turn.

A machine that others use too becomes faster and slower by a tenth within a minute, which a sweep of one way after another
takes for a difference between them. Engines that rest take memory and no processor, so small ones may all be up at once;
then each round asks every way within seconds, and what the machine does meanwhile falls out of the comparison by rounds.
vLLM's workers are halted between their turns: for a second after an answer they look for more work, and took one of two
cores from whoever was asked then. A way that is slower than the fastest beyond chance, or not faster than the choice by as
much as matters, is asked no more; all is over once it can be told, beyond chance, whether the choice is near enough to the
best.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import NamedTuple

import msgspec
import psutil

from benchmarks.tuning_page import NEAR
from stoker.bench.figures import figures_of
from stoker.bench.turns import Turns, take_turns
from stoker.flows.bench_targets import choose_service
from stoker.flows.client import Daemon
from stoker.flows.tunable import Tunable
from stoker.flows.tune_asking import Asking
from stoker.flows.up import follow
from stoker.records import State, Target, Way
from stoker.tune.ratios import interval

FIGURE = "total_decode_tps"
FIRST_ROUNDS = 6  # of all ways; then those that are slower than the fastest beyond chance are asked no more
LEAST_ROUNDS = 24  # before it may be told whether the choice is near enough
MATTERS = 1 / (1 - NEAR)  # of a rate by the choice's
LEVEL = 0.99  # of a comparison, as there are many of them
SPINNING = "VLLM::Worker"  # the names of processes that are halted


Rates = Mapping[Way, Sequence[float]]


class Sweep(NamedTuple):
    """What each way gave, round by round, as long as it was asked; and what that took."""

    rates: Rates
    took_s: float

    @property
    def best(self) -> Way:
        """The way with the highest mean, of those that were asked to the end."""
        return self._best_of(slice(None))

    def _best_of(self, rounds: slice) -> Way:
        longest = max(len(rates) for rates in self.rates.values())
        means = {way: mean(rates[rounds]) for way, rates in self.rates.items() if len(rates) == longest}
        return max(means, key=means.__getitem__)

    def turns(self, chosen: Way) -> tuple[tuple[float, float], ...]:
        """Returns the choice's rate in each round, and the rate of the way that is the best by every other round.

        The best of many figures is too high by chance, in the rounds by which it is the best; in the others it is not.
        None where the choice is the best by either half.
        """
        bests = [self._best_of(slice(other, None, 2)) for other in (1, 0)]
        if set(bests) == {chosen}:
            return ()
        count = len(self.rates[bests[0]])
        return tuple((self.rates[chosen][number], self.rates[bests[number % 2]][number]) for number in range(count))


def mean(rates: Sequence[float]) -> float:
    """Returns the geometric mean."""
    return math.exp(statistics.fmean(map(math.log, rates)))


class Asked(NamedTuple):
    """One way that runs, and those processes of its engine that are halted between its turns."""

    turns: Turns
    halted: Sequence[psutil.Process] = ()

    def rate(self, number: int) -> float:
        """Returns the rate of a round's prompt; 0 where it was not answered."""
        self.go_on()
        repeat = self.turns.play(number)
        for one in self.halted:
            one.suspend()
        return next((one.values[0] for one in figures_of([repeat], None) if one.name == FIGURE and one.values), 0.0)

    def go_on(self) -> None:
        """Lets the engine work again."""
        for one in self.halted:
            one.resume()


class Fleet:
    """Every way of a service, each up as a service of its own until the daemon ends; ways that do not start are left out."""

    def __init__(self, daemon: Daemon, tunable: Tunable) -> None:
        began_s = time.monotonic()
        ways = [way for family in tunable.families for way in family.ways]
        self._names = {
            way: name for number, way in enumerate(ways) if (name := start(daemon, tunable, way, f"way-{number}"))
        }
        leaders = {view.name: view.pid for view in daemon.status().services if view.name in self._names.values()}
        self._halted = {name: find_spinning(leader) for name, leader in leaders.items()}
        self._start_s = time.monotonic() - began_s

    def sweep(self, asking: Asking, chosen: Way, rounds: int) -> Sweep:
        """Asks all in turn, past the gateway."""
        began_s = time.monotonic()
        with ExitStack() as stack:
            asked = {}
            for way, name in self._names.items():
                target, subject = choose_service(name, direct=True)
                asked[way] = meet_way(target, subject.engine, asking, stack)._replace(halted=self._halted[name])
                stack.callback(asked[way].go_on)
            rates = ask_in_turn(asked, chosen, rounds)
        return Sweep(rates, self._start_s + time.monotonic() - began_s)


def ask_in_turn(asked: Mapping[Way, Asked], chosen: Way, rounds: int) -> Rates:
    """Asks ways that run the same prompts in turn, until it is told whether the choice is near enough to the best."""
    for one in asked.values():
        one.rate(-1)  # what is asked first is slow
    rates: dict[Way, list[float]] = {way: [] for way in asked}
    still = list(asked)
    for number in range(rounds):
        for way in still[number % len(still) :] + still[: number % len(still)]:
            rates[way].append(asked[way].rate(number))
        still = not_slower({way: rates[way] for way in still}, chosen)
        if is_told({way: rates[way] for way in still}, chosen):
            break
    return rates


def not_slower(rates: Rates, chosen: Way) -> list[Way]:
    """Returns the ways that may still be the best by as much as matters, the fastest so far, and the choice.

    All of them have the same rounds.
    """
    leader = max(rates, key=lambda way: mean(rates[way]))
    if len(rates[leader]) < FIRST_ROUNDS:
        return list(rates)
    return [way for way in rates if way in (chosen, leader) or may_matter(rates, way, leader, chosen)]


def may_matter(rates: Rates, way: Way, leader: Way, chosen: Way) -> bool:
    """Tells whether a way may be as fast as the fastest, and faster than the choice by as much as matters."""
    return against(rates, way, leader)[1] >= 1 and against(rates, way, chosen)[1] >= MATTERS


def is_told(rates: Rates, chosen: Way) -> bool:
    """Tells whether no way is faster than the choice by as much as matters, or one is; both beyond chance."""
    if len(rates[chosen]) < LEAST_ROUNDS:
        return False
    found = [against(rates, way, chosen) for way in rates if way != chosen]
    return all(high < MATTERS for _, high in found) or any(low > MATTERS for low, _ in found)


def against(rates: Rates, way: Way, other: Way) -> tuple[float, float]:
    """Returns between what bounds the one's rate lies by the other's, from the rounds that both had."""
    logs = [math.log(one / two) for one, two in zip(rates[way], rates[other], strict=True)]
    middle, half = interval(logs, LEVEL)
    return (math.exp(middle - half), math.exp(middle + half)) if half is not None else (0.0, math.inf)


def find_spinning(leader: int | None) -> list[psutil.Process]:
    """Returns those processes of an engine that take a core while nothing is asked."""
    every = psutil.Process(leader).children(recursive=True) if leader else []
    return [one for one in every if one.name().startswith(SPINNING)]


def start(daemon: Daemon, tunable: Tunable, way: Way, name: str) -> str:
    """Returns the name of the service that runs that way; nothing where it did not start."""
    view = daemon.up(msgspec.structs.replace(tunable.wish_for(way), name=name))
    for now in follow(daemon, view):
        view = now
    return name if view.state is State.READY else ""


def meet_way(target: Target, engine: str | None, asking: Asking, stack: ExitStack) -> Asked:
    """Returns how a way that runs is asked."""
    [cell] = asking.cells()
    return Asked(take_turns(target, engine, cell, asking.seed, stack))
