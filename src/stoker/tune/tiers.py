"""Finds how many tokens to draft at each load, where several were measured: a table for engines that take one. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from stoker.records import Tiers, Way
from stoker.tune.choosing import State
from stoker.tune.curve import Guess, guess_rate, log_rate
from stoker.tune.families import OFF, Family

LEAST_SD = 0.02  # of a table, even where each of its numbers was measured: its ranges are not the loads that were


def with_tiers(state: State, requests: int) -> State:
    """Returns the state with the best table that is known now among its ways, in the place of one that was not measured.

    `requests` is how many the service answers at once: the last range ends there.
    """
    tried = {*state.failed, *(one.way for one in state.measured)}
    families = tuple(one for one in state.families if one.ways[0].draft_tiers is None or one.ways[0] in tried)
    tables = [way for family in families if (way := _table(state, family, requests))]
    known = {way for family in families for way in family.ways}
    new = tuple(Family((way,), None, is_scouted=False) for way in tables if way not in known)
    return msgspec.structs.replace(state, families=(*families, *new))


def _table(state: State, family: Family, requests: int) -> Way | None:
    """Returns the best table of a family; None where the engine takes none, or one number is best for all loads."""
    loads = sorted(set(state.loads))
    if family.kind not in state.tiered or family.axis != "draft_tokens" or len(loads) < 2 or state.find(OFF) is None:
        return None
    if not any(one.way in family.ways for one in state.measured):
        return None
    counts = [_best(state, family, load) for load in loads]
    tiers = _merged(loads, counts, requests)
    if len(tiers) < 2:
        return None
    return msgspec.structs.replace(family.ways[0], draft_tokens=max(counts), draft_tiers=tiers)


def _best(state: State, family: Family, load: int) -> int:
    numbers = [0, *(way.draft_tokens or 0 for way in family.ways)]
    return max(numbers, key=lambda count: (_expected(state, family, count, load).mean, -count))


def _merged(loads: Sequence[int], counts: Sequence[int], requests: int) -> Tiers:
    """Returns ranges that end halfway between two loads, by factors; neighbours with one number are one range."""
    ends = [*(math.isqrt(one * other) for one, other in pairwise(loads)), max(requests, loads[-1])]
    tiers: list[tuple[int, int, int]] = []
    for end, count in zip(ends, counts, strict=True):
        first = tiers[-1][1] + 1 if tiers else 1
        if tiers and tiers[-1][2] == count:
            tiers[-1] = (tiers[-1][0], end, count)
        else:
            tiers.append((first, end, count))
    return tuple(tiers)


def guess_table(state: State, table: Way) -> Guess | None:
    """Returns the rate to expect of a table: at each load that of the number which it says there."""
    like = msgspec.structs.replace(table, draft_tiers=None)
    family = next((one for one in state.families if like in one.ways), None)
    if family is None:
        return None
    each = [_expected(state, family, count_at(table, load), load) for load in state.loads]
    return Guess(sum(one.mean for one in each) / len(each), max(LEAST_SD, sum(one.sd for one in each) / len(each)))


def count_at(table: Way, load: int) -> int:
    """Returns how many tokens a table drafts for so many requests."""
    return next((tokens for _, last, tokens in table.draft_tiers or () if load <= last), 0)


def _expected(state: State, family: Family, count: int, load: int) -> Guess:
    """Returns what was measured of a number at a load, or what is guessed of it."""
    places = [place for place, one in enumerate(state.loads) if one == load]
    way = OFF if count == 0 else msgspec.structs.replace(family.ways[0], draft_tokens=count)
    if (found := state.find(way)) is not None:
        return Guess(sum(log_rate(found.seen[place]) for place in places) / len(places), 0.0)
    plain = state.find(OFF)
    if plain is None:
        raise ValueError("nothing is guessed before off was measured")
    own = [(one.way.draft_tokens, one) for one in state.measured if one.way in family.ways and one.way.draft_tokens]
    each = [
        guess_rate(count, way.kind or "", plain.seen[place], [(tokens, one.seen[place]) for tokens, one in own])
        for place in places
    ]
    return Guess(sum(one.mean for one in each) / len(each), sum(one.sd for one in each) / len(each))
