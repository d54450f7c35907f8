"""What watching is tried with: faults that are planted, healthy months, and which alert should come of which."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from benchmarks import watched_load, watched_replay
from benchmarks.watched_load import ALWAYS, CHAT, CODE, DAY_S, HOUR_S, PROSE, Load, Trouble, Work
from stoker.watch.samples import EngineSample

OFFICE = Load()
LEARNT_DAYS, AFTER_DAYS = 4.0, 2.0
AT_S = LEARNT_DAYS * DAY_S + 10 * HOUR_S  # a Friday at ten
DRAFT = ("accept-rate-dropped", "accept-rate-decayed", "sglang-speculation-degraded")
OTHER = ("speculation-other-work",)
HIGH = Load(works=((Work(0.76, 4000, 350), 0.7), (Work(0.70, 900, 300), 0.3)))
LOW = Load(works=((Work(0.17, 4000, 350), 0.7), (Work(0.14, 900, 300), 0.3)))
IN_TURN = Load(works=((CODE, 0.4), (CHAT, 0.3), (PROSE, 0.3)))
Player: TypeAlias = Callable[[Load, Trouble, float, int], Iterator[tuple[EngineSample, float | None]]]


@dataclass(frozen=True)
class Case:
    """A load with a fault at a time, and the alerts of which one should come; none: nothing is wrong."""

    name: str
    load: Load
    trouble: Trouble
    wanted: tuple[str, ...] = ()
    days: float = LEARNT_DAYS + AFTER_DAYS
    method: str = "eagle"
    fault_s: float = AT_S
    player: Player = watched_load.play


def dropped(to: float, at_s: float = AT_S, restarts_s: tuple[float, ...] = ()) -> Trouble:
    """The draft is worth so much of what it was, from one moment to the next."""
    return Trouble(lambda now_s: to if now_s >= at_s else 1.0, restarts_s=restarts_s)


def decaying(hours: float, at_s: float = AT_S) -> Trouble:
    """The draft is worth less and less, and nothing after so many hours."""
    return Trouble(lambda now_s: 1 - min(1.0, max(0.0, now_s - at_s) / (hours * HOUR_S)))


NIGHTLY = tuple(day * DAY_S + 3 * HOUR_S for day in range(1, 30))
GAPS = tuple((day * DAY_S + 11 * HOUR_S, day * DAY_S + 11.5 * HOUR_S) for day in range(1, 30, 3))
UNSEEN = ((AT_S, AT_S + HOUR_S / 2),)
NIGHT_S = LEARNT_DAYS * DAY_S + 2 * HOUR_S
FAULTS = (
    Case("drops from 0.35 to 0.10", OFFICE, dropped(0.29), DRAFT),
    Case("the same, asked day and night", ALWAYS, dropped(0.29), DRAFT),
    Case("drops to 0.10 at a restart", OFFICE, dropped(0.29, restarts_s=(AT_S,)), DRAFT),
    Case("drops from 0.35 to 0.16", OFFICE, dropped(0.45), DRAFT),
    Case("drops from 0.75 to 0.30", HIGH, dropped(0.40), DRAFT),
    Case("drops from 0.16 to 0.05, n-grams", LOW, dropped(0.3), DRAFT, method="ngram"),
    Case("decays to nothing in 16 hours", ALWAYS, decaying(16), DRAFT),
    Case("decays to nothing in 16 hours, office", OFFICE, decaying(16, AT_S - 2 * HOUR_S), DRAFT, fault_s=AT_S - 2 * HOUR_S),
    Case("decays to nothing in 3 days", ALWAYS, decaying(72), DRAFT, days=LEARNT_DAYS + 5),
    Case("other work, drafts at 0.13", OFFICE, Trouble(other_from_s=AT_S, other=Work(0.13, 200, 1200)), OTHER),
)
HEALTHY = (
    Case("office hours", OFFICE, Trouble(), days=30),
    Case("day and night", ALWAYS, Trouble(), days=30),
    Case("office hours, a restart each night", OFFICE, Trouble(restarts_s=NIGHTLY), days=30),
    Case("day and night, half an hour lost every third day", ALWAYS, Trouble(gaps_s=GAPS), days=30),
    Case("code, chat and prose in turn", IN_TURN, Trouble(), days=30),
    Case("drafts of 0.75", HIGH, Trouble(), days=30),
    Case("n-grams of 0.16", LOW, Trouble(), days=30, method="ngram"),
)
played_on = partial(Case, method="draft-simple", player=watched_replay.play_on)
RECORDED_FAULTS = (
    played_on("drops to nothing", OFFICE, dropped(0.0), DRAFT),
    played_on("the same, asked day and night", ALWAYS, dropped(0.0), DRAFT),
    played_on("drops to nothing at a restart", OFFICE, dropped(0.0, restarts_s=(AT_S,)), DRAFT),
    played_on("drops in an idle night", OFFICE, dropped(0.0, NIGHT_S), DRAFT, fault_s=AT_S - 2 * HOUR_S),
    played_on("drops while nobody watches, for half an hour", OFFICE, replace(dropped(0.0), gaps_s=UNSEEN), DRAFT),
    played_on("drops to 0.3 of what it was", OFFICE, dropped(0.3), DRAFT),
    played_on("decays to nothing in 16 hours", ALWAYS, decaying(16), DRAFT),
    played_on("decays to nothing in 3 days", ALWAYS, decaying(72), DRAFT, days=LEARNT_DAYS + 5),
    played_on("other work, of which less is accepted", OFFICE, Trouble(other_from_s=AT_S, other=Work(0.13, 60, 110)), OTHER),
)
RECORDED_HEALTHY = (
    played_on("office hours, idle nights and weekends", OFFICE, Trouble(), days=30),
    played_on("day and night", ALWAYS, Trouble(), days=30),
    played_on("office hours, a restart each night", OFFICE, Trouble(restarts_s=NIGHTLY), days=30),
    played_on("day and night, half an hour lost every third day", ALWAYS, Trouble(gaps_s=GAPS), days=30),
    played_on("code, chat and prose in turn", IN_TURN, Trouble(), days=30),
    played_on("code, then prose from the fifth day on", OFFICE, Trouble(other_from_s=AT_S, other=PROSE), days=30),
)


@dataclass(frozen=True)
class AsRecorded:
    """Recordings that follow each other, and the alerts of which one should come after the first; none: nothing is wrong."""

    name: str
    played: tuple[str, ...]
    is_other_launch: bool
    wanted: tuple[str, ...]


AS_RECORDED = (
    AsRecorded("a restart, and drafts of no use", ("code", "code-useless"), True, DRAFT),
    AsRecorded("drafts of no use within one launch", ("code", "code-useless"), False, DRAFT),
    AsRecorded("a restart, and a draft with half of its words exchanged", ("code", "code-worse"), True, DRAFT),
    AsRecorded("prose drawn freely instead of code", ("code", "free-prose"), False, OTHER),
    AsRecorded("prose instead of code, drafted as well", ("code", "prose"), False, ()),
    AsRecorded("chat instead of code, drafted as well", ("code", "chat"), False, ()),
    AsRecorded("a restart, and all is well", ("code", "code"), True, ()),
)
