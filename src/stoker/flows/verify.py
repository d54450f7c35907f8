"""Proves an endpoint: asks it what clients will ask, and says what was found."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from stoker.box import clock_s
from stoker.probes import find, names
from stoker.probes.kit.probe import Probe
from stoker.probes.kit.run import Player, play_probes
from stoker.records import ProbeResult, Target, Verification, worst

QUICK_BUDGET_S = 60.0
DEEP_BUDGET_S = 900.0
Note = Callable[[ProbeResult], None]


def choose_probes(named: Sequence[str], required: Sequence[str], deep: bool) -> list[Probe]:
    """Returns the probes named, else the default set, and those required; raises WrongUse where one does not exist."""
    for name in (*named, *required):
        find(name)
    known = [find(name) for name in names()]
    return [one for one in known if one.name in (*named, *required) or (not named and (deep or not one.deep))]


def verify(target: Target, probes: Sequence[Probe], required: Sequence[str], budget_s: float, note: Note) -> Verification:
    """Returns everything that was found out; `note` is told each probe's result as it comes."""
    begun = clock_s()
    player, results = asyncio.run(play_probes(target, probes, budget_s, frozenset(required), note))
    return _view(target, player, results, begun, budget_s)


def _view(target: Target, player: Player, results: list[ProbeResult], begun: float, budget_s: float) -> Verification:
    return Verification(
        url=target.url, model=target.model, engine=player.engine, begun=begun, took_s=round(clock_s() - begun, 3),
        budget_s=budget_s, in_time=player.in_time, verdict=worst([one.verdict for one in results]), probes=tuple(results),
    )  # fmt: skip
