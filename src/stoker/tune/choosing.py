"""Chooses which way to start next, when to stop, and which way is best in the end. Pure.

Of what was not measured, a start is worth where it may well be faster than the best one that was: the largest expected
improvement first. Once nothing has that chance, the best measured one is best beyond doubt.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist

from stoker.records import Record, Seen, Sighting, Way
from stoker.tune.curve import Guess, guess_rate
from stoker.tune.families import OFF, Family, complexity, scouts
from stoker.tune.ratios import compare, rate_of

WORTH = 0.01  # what is not faster by this much is not worth a start
DOUBT = 0.1  # nor is what is faster by that much with a smaller chance
ALIKE = 0.01  # rates this near are one rate, and the simpler way is taken
LEAST_STARTS = 3
SWEEP_SHARE = 0.5

NORMAL = NormalDist()
Guesses = Mapping[Way, Guess]


class State(Record, frozen=True):
    """What is known so far: what was measured, and what did not work."""

    families: tuple[Family, ...]
    measured: tuple[Sighting, ...] = ()
    failed: frozenset[Way] = frozenset()

    def find(self, way: Way) -> Sighting | None:
        """Returns what was measured of a way."""
        return next((one for one in self.measured if one.way == way), None)

    @property
    def ways(self) -> tuple[Way, ...]:
        """All that there are."""
        return tuple(way for family in self.families for way in family.ways)


def most_starts(state: State) -> int:
    """Returns how many ways may be started: half of what a sweep would take, less the last start of the best one."""
    return max(LEAST_STARTS, int(SWEEP_SHARE * (len(state.ways) + 1)) - 1)


def next_scout(state: State) -> Way | None:
    """Returns the next way that tells of ways which nothing is known of yet; None where all families are known.

    Where the service drafts already, but less, its counters say nothing of the positions behind.
    """
    for family in state.families:
        scout = next((way for way in scouts(family) if way not in state.failed), None)
        known = [one.way.draft_tokens or 0 for one in state.measured if one.way in family.ways]
        if scout is not None and max(known, default=-1) < (scout.draft_tokens or 0):
            return scout
    return None


def guess_all(state: State) -> dict[Way, Guess]:
    """Returns what to expect of every way that was not measured and belongs to a family that was."""
    plain = state.find(OFF)
    if plain is None:
        return {}
    return {
        way: _guess(way.draft_tokens, family.kind, plain.seen, found)
        for family in state.families if (found := _counted(state, family))
        for way in family.ways if way.draft_tokens is not None and way not in state.failed and state.find(way) is None
    }  # fmt: skip


def _counted(state: State, family: Family) -> list[tuple[int, Sighting]]:
    """Returns what was measured of a family, by the number of draft tokens."""
    ways = set(family.ways)
    return [(one.way.draft_tokens, one) for one in state.measured if one.way in ways and one.way.draft_tokens]


def _guess(count: int, kind: str, plain: Sequence[Seen], found: Sequence[tuple[int, Sighting]]) -> Guess:
    """Returns the guess for all contents together; what is off for one of them is likely off for all."""
    each = [
        guess_rate(count, kind, one, [(tokens, seen.seen[place]) for tokens, seen in found])
        for place, one in enumerate(plain)
    ]
    return Guess(sum(one.mean for one in each) / len(each), sum(one.sd for one in each) / len(each))


def leader_of(state: State) -> Sighting | None:
    """Returns the fastest way that was measured."""
    return max(state.measured, key=rate_of, default=None)


def next_way(state: State, guesses: Guesses) -> Way | None:
    """Returns the way that is worth a start next; None where none is."""
    leader = leader_of(state)
    if leader is None or len(state.measured) + len(state.failed) >= most_starts(state):
        return None
    goal = math.log(rate_of(leader) * (1 + WORTH))
    chances = {way: _improvement(guess, goal) for way, guess in guesses.items() if _chance(guess, goal) >= DOUBT}
    return max(chances, key=lambda way: (chances[way], [-part for part in complexity(way)]), default=None)


def _chance(guess: Guess, goal: float) -> float:
    return NORMAL.cdf((guess.mean - goal) / max(guess.sd, 1e-6))


def _improvement(guess: Guess, goal: float) -> float:
    """Returns by how much it is expected to exceed the goal, where it does."""
    sd = max(guess.sd, 1e-6)
    z = (guess.mean - goal) / sd
    return sd * (NORMAL.pdf(z) + z * NORMAL.cdf(z))


def choose(state: State, present: Way) -> tuple[Sighting, str]:
    """Returns the best measured way and why it is the one: a simpler one where the difference may be chance.

    Raises ValueError where nothing was measured.
    """
    leader = max(state.measured, key=rate_of)
    alike = [one for one in state.measured if rate_of(one) * (1 + ALIKE) >= rate_of(leader)]
    best = min(alike, key=lambda one: complexity(one.way))
    for way in (OFF, present):
        sure = state.find(way)
        if sure is None or complexity(sure.way) >= complexity(best.way):
            continue
        if not (said := compare(best, sure)).is_faster:
            chance = _say(said.low, said.high)
            return sure, f"no difference between {best.way.name} and {sure.way.name} beyond chance{chance}"
    return best, _why(state, best)


def _say(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return ": too few repeats"
    return f" ({100 * (low - 1):+.1f} to {100 * (high - 1):+.1f} %)"


def _why(state: State, best: Sighting) -> str:
    plain = state.find(OFF)
    if plain is None or plain.way == best.way:
        return "nothing that was tried is faster" if plain else "it is the fastest of what was tried"
    times = rate_of(best) / rate_of(plain)
    return f"{'more than ten' if times > 10 else f'{times:.2f}'} times as fast as without drafts"
