"""Says what of an engine's metrics cannot be, by themselves or beside what the same process told before. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from stoker.watch.engine_page import NO_NAMES, NOT_A_NUMBER, EnginePage
from stoker.watch.engine_series import ENGINE_SERIES

UNREACHABLE, TOO_LARGE = "unreachable", "too large"
WENT_BACK, IMPOSSIBLE, VANISHED = "went back", "impossible", "vanished"
PROBLEMS = (UNREACHABLE, TOO_LARGE, NO_NAMES, NOT_A_NUMBER, WENT_BACK, IMPOSSIBLE, VANISHED)
COUNTERS = frozenset(series.name for series in ENGINE_SERIES if series.kind == "counter")
SHARES = ("stoker_engine_accept_rate", "stoker_engine_cache_used_ratio")
SLACK = 1.01  # counters of one page are read one after the other


class Known(NamedTuple):
    """What one process has told until now: the last value of each name, and whether a counter ever went back."""

    values: Mapping[str, float]
    went_back: bool = False


def find_problems(known: Known | None, now: EnginePage) -> frozenset[str]:
    """Returns what is wrong with a page of a process that told what is `known` before."""
    found = set(now.problems)
    if _is_impossible(now):
        found.add(IMPOSSIBLE)
    if known is not None:
        counted = COUNTERS & known.values.keys() & now.values.keys()
        if known.went_back or any(now.values[name] < known.values[name] for name in counted):
            found.add(WENT_BACK)
        if known.values.keys() - now.values.keys():
            found.add(VANISHED)
    return frozenset(found)


def learn(known: Known | None, now: EnginePage, problems: frozenset[str]) -> Known:
    """Returns what is known after a page: names that vanished stay, and that a counter went back is not forgotten."""
    return Known({**(known.values if known else {}), **now.values}, WENT_BACK in problems)


def _is_impossible(page: EnginePage) -> bool:
    values = page.values
    proposed, accepted = values.get("stoker_engine_draft_tokens"), values.get("stoker_engine_accepted_tokens")
    too_many = proposed is not None and accepted is not None and accepted > proposed * SLACK
    sinks = any(low > high for one in page.histograms.values() for (_, low), (_, high) in pairwise(one.buckets))
    return too_many or sinks or any(values.get(name, 0.0) > SLACK for name in SHARES)
