"""Chooses which way to start next, when to stop, and which way is best in the end. Pure.

Of what was not measured, a start is worth where it may well be faster than the best one that was: the largest expected
improvement first. Once nothing has that chance, the best measured one is best beyond doubt.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from statistics import NormalDist

from stoker.records import Record, Sighting, SpeculationKind, Way
from stoker.tune.curve import Guess
from stoker.tune.families import OFF, Family, complexity, scouts
from stoker.tune.hopeless import cannot_win
from stoker.tune.luck import START_SD, knows_luck, luck_of
from stoker.tune.ratios import Ratio, compare, is_in_doubt, logs_of, may_be_faster, rate_of

WORTH = 0.01  # what is not faster by this much is not worth a start
DOUBT = 0.1  # nor is what is faster by that much with a smaller chance
ALIKE = 0.01  # rates this near are one rate, and the simpler way is taken
MATTERS = 0.03  # what cannot be faster than another way by this much is not measured on
# Memory that an engine has nobody else has; where its cache was short, more of it brings far more than this.
MEMORY_GAIN = 2 * START_SD
NEAR = 0.1  # two ways that a single start of each tells apart by less may be so by what is that start's own
CLOSE = 0.06  # for two that are nearer than this the last two starts are kept
LEAST_STARTS = 3
SWEEP_SHARE = 0.5

NORMAL = NormalDist()
NO_LUCK: Mapping[Way, float] = {}
Guesses = Mapping[Way, Guess]


class State(Record, frozen=True):
    """What is known so far: what was measured, and what did not work.

    `loads` are the requests at once of each thing that was seen of a way; `tiered` the kinds of drafts for which the engine
    takes a number of draft tokens by how many requests run; `was_up`: what the service has ran already, and took no start.
    """

    families: tuple[Family, ...]
    measured: tuple[Sighting, ...] = ()
    failed: frozenset[Way] = frozenset()
    loads: tuple[int, ...] = ()
    tiered: frozenset[SpeculationKind] = frozenset()
    was_up: bool = False

    def find(self, way: Way) -> Sighting | None:
        """Returns what was measured of a way."""
        return next((one for one in self.measured if one.way == way), None)

    @property
    def starts(self) -> int:
        """How many there were."""
        return sum(max(1, len(one.start_logs)) for one in self.measured) + len(self.failed)

    @property
    def ways(self) -> tuple[Way, ...]:
        """All that there are."""
        return tuple(way for family in self.families for way in family.ways)


def most_starts(state: State) -> int:
    """Returns how many ways may be measured: by half of a sweep's starts, less the best's last; what ran took none."""
    return max(LEAST_STARTS, int(SWEEP_SHARE * (len(state.ways) + 1)) - 1 + state.was_up)


def next_scout(state: State) -> Way | None:
    """Returns the next way that tells of ways which nothing is known of yet; None where all families are known.

    Where the service drafts already, but less, its counters say nothing of the positions behind; but where even the best of
    these would leave it slower than another way, nobody needs to know.
    """
    for family in state.families:
        if not family.is_scouted:
            continue
        scout = next((way for way in scouts(family) if way not in state.failed), None)
        known = [one.way.draft_tokens or 0 for one in state.measured if one.way in family.ways]
        if (
            scout is not None
            and max(known, default=-1) < (scout.draft_tokens or 0)
            and scout not in _hopeless(state, family)
        ):
            return scout
    return None


def _hopeless(state: State, family: Family) -> frozenset[Way]:
    return cannot_win(family, state.measured, _goal(state)) if state.measured else frozenset()


def _goal(state: State) -> float:
    """Returns the logarithm of the rate that is worth a start; something was measured."""
    return math.log(rate_of(_fastest(state.measured)) * (1 + WORTH))


def _fastest(measured: Iterable[Sighting], luck: Mapping[Way, float] = NO_LUCK) -> Sighting:
    """Returns the fastest by the prompts that both had: what was measured for longer also had those that come later."""
    return reduce(lambda best, one: one if _fair(one, best, luck).ratio > 1 else best, measured)


def next_way(state: State, guesses: Guesses) -> Way | None:
    """Returns the way that is worth a start next; None where none is."""
    if not state.measured or state.starts >= most_starts(state):
        return None
    goal = _goal(state)
    hopeless = {way for family in state.families for way in cannot_win(family, state.measured, goal)}
    worth = {way: guess for way, guess in guesses.items() if way not in hopeless and _chance(guess, goal) >= DOUBT}
    if _is_close(state) and all(guess.mean < goal for guess in worth.values()):
        return None  # the last two starts tell more of the best two
    chances = {way: _improvement(guess, goal) for way, guess in worth.items()}
    return max(chances, key=lambda way: (chances[way], [-part for part in complexity(way)]), default=None)


def _is_close(state: State) -> bool:
    """Tells whether two starts are left, and the best two that draft in different manners are near each other."""
    luck = luck_of(state.families, state.measured)
    leader = _fastest(state.measured, luck)
    rival = _rival(state, leader, luck)
    return (
        state.starts + 2 == most_starts(state) and rival is not None and _fair(leader, rival, luck).ratio <= 1 + CLOSE
        and _may_start_again(leader, rival)
    )  # fmt: skip


def _may_start_again(best: Sighting, rival: Sighting) -> bool:
    """Tells whether a second start of both would tell more: not where each start told its own luck."""
    return not (best.is_kept or rival.is_kept or all(one.is_level or knows_luck(one) for one in (best, rival)))


def _rival(state: State, best: Sighting, luck: Mapping[Way, float]) -> Sighting | None:
    """Returns the fastest of another family."""
    own = next((family.ways for family in state.families if best.way in family.ways), (best.way,))
    rivals = [one for one in state.measured if one.way not in own]
    return _fastest(rivals, luck) if rivals else None


def needs_more(found: Sighting, others: Sequence[Sighting]) -> bool:
    """Tells whether a way is measured on: as long as the others were, while it may be faster than each by what matters.

    A few repeats tell that a way is far slower, and not which of two near ones is the faster.
    """
    most = max((len(logs_of(one)) for one in others), default=0)
    return len(logs_of(found)) < most and all(may_be_faster(found, one, MATTERS) for one in others)


def next_pair(state: State, present: Way) -> tuple[Way, ...]:
    """Returns two ways to be started again, one after the other, before one is taken; none where that is not worth it.

    They are the choice and the fastest of another family. The machine may have become slower between the first
    starts of both, or one of those was lucky; where they are far apart beyond chance, that changes nothing. Numbers beside
    each other are known from one another, and which of them is taken matters little.
    """
    luck = luck_of(state.families, state.measured)
    best, _ = choose(state, present)
    rival = _rival(state, best, luck)
    if rival is None or state.starts + 2 > most_starts(state) or best.start_logs or not _may_start_again(best, rival):
        return ()
    near = abs(math.log(_fair(best, rival, luck).ratio)) <= NEAR
    return (best.way, rival.way) if near or is_in_doubt(rival, best, WORTH) else ()


def _chance(guess: Guess, goal: float) -> float:
    return NORMAL.cdf((guess.mean - goal) / max(guess.sd, 1e-6))


def _improvement(guess: Guess, goal: float) -> float:
    """Returns by how much it is expected to exceed the goal, where it does."""
    sd = max(guess.sd, 1e-6)
    z = (guess.mean - goal) / sd
    return sd * (NORMAL.pdf(z) + z * NORMAL.cdf(z))


def choose(state: State, present: Way) -> tuple[Sighting, str]:
    """Returns the best of what was measured, at least one way, and why: a simpler one where the difference may be chance.

    Each is taken to be as fast as it was measured, less what is likely its start's own luck.
    """
    luck = luck_of(state.families, state.measured)
    leader = _fastest(state.measured, luck)
    alike = [one for one in state.measured if _fair(leader, one, luck).ratio <= 1 + ALIKE]
    best = min(alike, key=lambda one: complexity(one.way, present))
    for way in (OFF, present):
        sure = state.find(way)
        if sure is None or complexity(sure.way, present) >= complexity(best.way, present):
            continue
        if not (said := _fair(best, sure, luck)).is_faster:
            chance = _say(said.low, said.high)
            return sure, f"no difference between {best.way.name} and {sure.way.name} beyond chance{chance}"
        if best.way.memory_share is not None and said.ratio < 1 + MEMORY_GAIN:
            return (
                sure,
                f"{best.way.name} is {said.ratio - 1:.1%} faster, which a start alone may be: no memory is given for that",
            )
    return best, _why(state, best, present) + _say_lucky(state, best)


def _say_lucky(state: State, best: Sighting) -> str:
    """Returns why what was measured as faster is not taken, where something was."""
    fastest = _fastest(state.measured)
    ratio = compare(fastest, best).ratio
    if ratio <= 1 + ALIKE:
        return _say_unlike(state, best)
    return f"; {fastest.way.name} was measured {ratio - 1:.1%} faster, more than the starts beside it bear out"


def _say_unlike(state: State, best: Sighting) -> str:
    """Returns why a rate that is shown as higher is no faster, where one is: of as many prompts as each was asked."""
    shown = max(state.measured, key=rate_of)
    if rate_of(shown) <= rate_of(best) * (1 + ALIKE):
        return ""
    return f"; the rate of {shown.way.name} is of other prompts, and of those that both were asked it is no faster"


def _fair(a: Sighting, b: Sighting, luck: Mapping[Way, float]) -> Ratio:
    return compare(a, b).moved(luck.get(b.way, 0.0) - luck.get(a.way, 0.0))


def _say(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return ": too few repeats"
    return f" ({100 * (low - 1):+.1f} to {100 * (high - 1):+.1f} %)"


def _why(state: State, best: Sighting, present: Way) -> str:
    base = state.find(present if present.kind is None else OFF)
    if base is None or base.way == best.way:
        return "nothing that was tried is faster" if base else "it is the fastest of what was tried"
    times = compare(best, base).ratio
    than = "without drafts" if base.way == OFF else f"with {present.name}"
    return f"{'more than ten' if times > 10 else f'{times:.2f}'} times as fast as {than}"
