"""Guesses the rate of every way that was not measured, from all that were. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from stoker.records import Seen, Sighting, Way
from stoker.tune.choosing import State
from stoker.tune.curve import Guess, guess_rate, log_rate
from stoker.tune.families import OFF, Family
from stoker.tune.kin import ADAPTIVE_SD, distance, guess_lookup, guess_tree, moved
from stoker.tune.ratios import rate_of
from stoker.tune.sizes import guess_size, places_of
from stoker.tune.tiers import guess_table

Counted = Sequence[tuple[int, Sighting]]


def guess_all(state: State) -> dict[Way, Guess]:
    """Returns what to expect of every way that was not measured, where anything that was tells of it."""
    return {way: guess for family in state.families for way, guess in _of_family(state, family)
            if way not in state.failed and state.find(way) is None}  # fmt: skip


def _of_family(state: State, family: Family) -> Iterator[tuple[Way, Guess]]:
    plain = state.find(OFF)
    if family.kind is None:
        yield from _of_sizes(state, family)
    elif plain is None or family.ways == (OFF,):
        return
    elif family.ways[0].draft_tiers:
        if (guess := guess_table(state, family.ways[0])) is not None:
            yield family.ways[0], guess
    elif own := _counted(state, family):
        yield from ((way, _chain(way, plain, own)) for way in family.ways)
    elif family.kind == "ngram":
        yield from _of_lookups(state, family, plain)
    elif chain := _measured_chain(state, family):
        yield from _of_kin(state, family, plain, chain)


def _counted(state: State, family: Family) -> list[tuple[int, Sighting]]:
    """Returns what was measured of a family, by the number of draft tokens."""
    if family.axis != "draft_tokens":
        return []
    ways = set(family.ways)
    return [(one.way.draft_tokens, one) for one in state.measured if one.way in ways and one.way.draft_tokens]


def _measured_chain(state: State, family: Family) -> list[tuple[int, Sighting]]:
    """Returns what was measured of chains of the same kind of draft."""
    return [pair for one in state.families if one.kind == family.kind for pair in _counted(state, one)]


def _each(plain: Sighting, guess: Callable[[Seen, int], Guess]) -> Guess:
    """Returns the guess for all contents together; what is off for one of them is likely off for all."""
    each = [guess(seen, place) for place, seen in enumerate(plain.seen)]
    return Guess(sum(one.mean for one in each) / len(each), sum(one.sd for one in each) / len(each))


def _at(found: Counted, place: int) -> list[tuple[int, Seen]]:
    return [(tokens, one.seen[place]) for tokens, one in found]


def _chain(way: Way, plain: Sighting, own: Counted) -> Guess:
    count, kind = way.draft_tokens or 1, way.kind or ""
    return _each(plain, lambda seen, place: guess_rate(count, kind, seen, _at(own, place)))


def _of_lookups(state: State, family: Family, plain: Sighting) -> Iterator[tuple[Way, Guess]]:
    """Further lookup lengths, by the one most like them that was measured."""
    others = [(one.ways[0], own) for one in state.families if one.kind == "ngram" and (own := _counted(state, one))]
    for way in family.ways if others and family.axis else ():  # one that is not counted is tried, or not at all
        relative, own = min(others, key=lambda one: distance(way, one[0]))
        yield way, _each(plain, lambda seen, place: guess_lookup(way, seen, relative, _at(own, place)))  # noqa: B023


def _of_kin(state: State, family: Family, plain: Sighting, chain: Counted) -> Iterator[tuple[Way, Guess]]:
    """Trees, and what the engine adapts itself, by the chains of the same draft."""

    def tree(way: Way) -> Guess:
        return _each(plain, lambda seen, place: guess_tree(way, seen, _at(chain, place)))

    if family.ways[0].draft_adaptive:
        most = max(count for count, _ in chain)
        best = max((_chain(Way(family.kind, count), plain, chain) for count in range(1, most + 1)), key=lambda one: one.mean)
        yield family.ways[0], Guess(best.mean, math.hypot(best.sd, ADAPTIVE_SD))
        return
    known = [(one.way, math.log(rate_of(one)), tree(one.way)) for one in state.measured if one.way in set(family.ways)]
    yield from ((way, moved(way, tree(way), known)) for way in family.ways)


def _of_sizes(state: State, family: Family) -> Iterator[tuple[Way, Guess]]:
    """Sizes by those that were measured; beyond one that did not work nothing is tried."""
    numbers, is_share = [family.number(way) for way in family.ways], family.axis == "memory_share"
    places = dict(zip(family.ways, places_of(numbers, is_share), strict=True))
    measured = {places[one.way]: sum(map(log_rate, one.seen)) / len(one.seen) for one in state.measured if one.way in places}
    least_failed = min((places[way] for way in state.failed if way in places), default=math.inf)
    step = max(measured, default=0.0) + 1.0 if is_share else math.inf
    for way, place in places.items():
        if measured and place not in measured and place < least_failed and place <= step:
            yield way, guess_size(place, measured)
