"""How soon watching finds what is wrong, and how often it cries wolf, beside the plain rule that was published.

`python -m benchmarks.watching --write docs/measured/watching.md`: every series is made with a seed, or was recorded of a
real engine (`benchmarks/watched_recording.py`), and is played in simulated time, so a busy machine changes nothing.

The published rule is `avg_over_time(accept_rate[15m]) < 0.15`, for five minutes, over the engine's gauge. It is given the
gauge under whatever name it has, every 15 s, and none before the engine's first batch.
"""

from __future__ import annotations

import argparse
import statistics
from collections import deque
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

from benchmarks.gateway.document import write_part
from benchmarks.watched_load import (
    ALWAYS,
    CHAT,
    CODE,
    DAY_S,
    HOUR_S,
    PROSE,
    Load,
    Trouble,
    Work,
    play,
)
from benchmarks.watched_recording import STANDS_FOR_S, has_recordings
from benchmarks.watched_recording import play as replay
from benchmarks.watched_recording import read as read_recording
from stoker.watch.book import AlertBook, Clock
from stoker.watch.engine import EngineCheck
from stoker.watch.samples import EngineSample
from stoker.watch.table import alerts_by_id

OFFICE = Load()
LEARNT_DAYS, AFTER_DAYS = 4.0, 2.0
AT_S = LEARNT_DAYS * DAY_S + 10 * HOUR_S  # a Friday at ten
DRAFT = ("accept-rate-dropped", "accept-rate-decayed", "sglang-speculation-degraded")
OTHER = ("speculation-other-work",)
HIGH = Load(works=((Work(0.76, 4000, 350), 0.7), (Work(0.70, 900, 300), 0.3)))
LOW = Load(works=((Work(0.17, 4000, 350), 0.7), (Work(0.14, 900, 300), 0.3)))
NEVER = float("inf")


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


def dropped(to: float, at_s: float = AT_S, restarts_s: tuple[float, ...] = ()) -> Trouble:
    """The draft is worth so much of what it was, from one moment to the next."""
    return Trouble(lambda now_s: to if now_s >= at_s else 1.0, restarts_s=restarts_s)


def decaying(hours: float, at_s: float = AT_S) -> Trouble:
    """The draft is worth less and less, and nothing after so many hours."""
    return Trouble(lambda now_s: 1 - min(1.0, max(0.0, now_s - at_s) / (hours * HOUR_S)))


NIGHTLY = tuple(day * DAY_S + 3 * HOUR_S for day in range(1, 30))
GAPS = tuple((day * DAY_S + 11 * HOUR_S, day * DAY_S + 11.5 * HOUR_S) for day in range(1, 30, 3))
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
    Case("code, chat and prose in turn", Load(works=((CODE, 0.4), (CHAT, 0.3), (PROSE, 0.3))), Trouble(), days=30),
    Case("drafts of 0.75", HIGH, Trouble(), days=30),
    Case("n-grams of 0.16", LOW, Trouble(), days=30, method="ngram"),
)


@dataclass(frozen=True)
class Recorded:
    """A recording that follows another one, and the alerts of which one should come."""

    name: str
    first: str
    then: str
    is_other_launch: bool
    wanted: tuple[str, ...]


CASES = (*FAULTS, *HEALTHY)
RECORDED = (
    Recorded("a restart, and drafts of no use", "usual", "useless", True, DRAFT),
    Recorded("prose instead of code", "usual", "other-work", False, OTHER),
    Recorded("a restart, and all is well", "usual", "usual", True, ()),
)


class PublishedRule:
    """The rule of the report, over a gauge that stays when nobody asks."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float]] = deque()
        self._low_since_s: float | None = None
        self.fires = False

    def look(self, at_s: float, gauge: float | None) -> bool:
        """Tells whether it begins to fire now."""
        if gauge is not None:
            self._seen.append((at_s, gauge))
        while self._seen and self._seen[0][0] <= at_s - 900:
            self._seen.popleft()
        is_low = bool(self._seen) and sum(value for _, value in self._seen) / len(self._seen) < 0.15
        self._low_since_s = (at_s if self._low_since_s is None else self._low_since_s) if is_low else None
        before, self.fires = self.fires, self._low_since_s is not None and at_s - self._low_since_s >= 300
        return self.fires and not before


class Ours:
    """A service's checks and the book that holds what they say."""

    def __init__(self, method: str) -> None:
        self._check, self._book = EngineCheck("llm", method), AlertBook(alerts_by_id())

    def look(self, sample: EngineSample) -> list[str]:
        """Returns the alerts that begin to fire now."""
        self._check.forget_gap(sample.at_s)
        looked = self._check.look(sample, 0.0)
        told = self._book.take(looked, Clock(sample.at_s, sample.at_s), self._check.lasted_s())
        return [alert.id for alert in told if alert.state == "firing"]


@dataclass(frozen=True)
class Seen:
    """When each of the two fired, and the alert's id."""

    ours: tuple[tuple[float, str], ...]
    published: tuple[float, ...]


def watch(looks: Iterable[tuple[EngineSample, float | None]], method: str) -> Seen:
    """Plays one series to both."""
    check, rule = Ours(method), PublishedRule()
    ours: list[tuple[float, str]] = []
    published: list[float] = []
    for sample, gauge in looks:
        ours += [(sample.at_s, alert) for alert in check.look(sample)]
        if rule.look(sample.at_s, gauge):
            published.append(sample.at_s)
    return Seen(tuple(ours), tuple(published))


@dataclass(frozen=True)
class Row:
    """One case over all seeds: delays in seconds, infinite where it was never found, and alarms that were false."""

    number: int
    ours_s: list[float]
    published_s: list[float]
    ours_false: int
    published_false: int


def judge(number: int, seeds: range) -> Row:
    """Plays a case, by its place, with every seed. Before the fault each alarm is false; after it, those of another kind."""
    case = CASES[number]
    ours_s, published_s, ours_false, published_false = [], [], 0, 0
    for seed in seeds:
        seen = watch(play(case.load, case.trouble, case.days, seed), case.method)
        fault_s = case.fault_s if case.wanted else NEVER
        right = [at_s - fault_s for at_s, alert in seen.ours if at_s >= fault_s and alert in case.wanted]
        ours_s.append(min(right, default=NEVER))
        published_s.append(min((at_s - fault_s for at_s in seen.published if at_s >= fault_s), default=NEVER))
        ours_false += sum(alert in DRAFT and (at_s < fault_s or alert not in case.wanted) for at_s, alert in seen.ours)
        is_drafts_fault = case.wanted == DRAFT
        published_false += sum(at_s < fault_s or not is_drafts_fault for at_s in seen.published)
    return Row(number, ours_s, published_s, ours_false, published_false)


def say(delays_s: list[float]) -> str:
    """Returns the middle and the longest delay, or how many were never found."""
    found = [one for one in delays_s if one != NEVER]
    if not found:
        return "never"
    unit_s, name = (60, "min") if max(found) < 4 * HOUR_S else (HOUR_S, "h")
    text = f"{statistics.median(found) / unit_s:.1f} {name} (longest {max(found) / unit_s:.1f})"
    return text if len(found) == len(delays_s) else f"{text}; {len(delays_s) - len(found)} of {len(delays_s)} never"


def replayed() -> tuple[str, bool]:
    """Returns the table of what was recorded, and whether all that was planted was found, and nothing else."""
    lines = ["| recorded | watching says | after | the published rule |", "|---|---|--:|--:|"]
    is_kept = True
    for one in RECORDED:
        seen = watch(replay(one.first, one.then, one.is_other_launch), "draft-simple")
        fault_s = len(read_recording(one.first)) * STANDS_FOR_S
        ours = [(at_s - fault_s, alert) for at_s, alert in seen.ours if alert in (*DRAFT, *OTHER)]
        is_kept &= bool(ours) == bool(one.wanted) and all(late_s >= 0 and alert in one.wanted for late_s, alert in ours)
        said = ", ".join(dict.fromkeys(alert for _, alert in ours)) or "nothing"
        after = f"{ours[0][0] / 60:.1f} min" if ours else ""
        published = say([min((at_s - fault_s for at_s in seen.published), default=NEVER)])
        lines.append(f"| {one.name} | {said} | {after} | {published} |")
    return "\n".join(lines), is_kept


def tables(seeds: range) -> tuple[str, bool]:
    """Returns both tables of what was made up, and whether all that was promised is so."""
    with ProcessPoolExecutor() as pool:
        rows = list(pool.map(judge, range(len(CASES)), repeat(seeds)))
    faults, healthy = rows[: len(FAULTS)], rows[len(FAULTS) :]
    lines = [
        "| what goes wrong | watching | the published rule | false before: watching | published |",
        "|---|--:|--:|--:|--:|",
    ]
    for row in faults:
        published = say(row.published_s)
        if CASES[row.number].wanted == OTHER:
            published = f"{published}, as a fault of the draft" if published != "never" else published
        cells = (CASES[row.number].name, say(row.ours_s), published, str(row.ours_false), str(row.published_false))
        lines.append(f"| {' | '.join(cells)} |")
    lines += [
        "",
        f"| a healthy month, {len(seeds)} times | watching: alarms a month | the published rule |",
        "|---|--:|--:|",
    ]
    for row in healthy:
        a_month = (f"{count / len(seeds):.1f}" for count in (row.ours_false, row.published_false))
        lines.append(f"| {CASES[row.number].name} | {' | '.join(a_month)} |")
    return "\n".join(lines), all(map(_is_kept, faults)) and all(row.ours_false <= len(seeds) for row in healthy)


def _is_kept(row: Row) -> bool:
    """Every fault is found, and in the middle sooner than by the published rule, where that one says what is so.

    It does not where it fires in each run before there is a fault, and where it takes other work for a fault.
    """
    is_no_match = row.published_false >= len(row.ours_s) or CASES[row.number].wanted == OTHER
    is_sooner = statistics.median(row.ours_s) < statistics.median(row.published_s)
    return NEVER not in row.ours_s and (is_sooner or is_no_match)


def main() -> None:
    """Prints the tables, or writes them; exits with 1 where something was not found, or not sooner."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--recorded-only", action="store_true")
    parser.add_argument("--write", type=Path, help="a page whose parts of these names are replaced")
    words = parser.parse_args()
    recorded, is_found = replayed() if has_recordings() else ("", True)
    made_up, is_kept = ("", True) if words.recorded_only else tables(range(words.seeds))
    print(f"{recorded}\n\n{made_up}")
    if words.write:
        if recorded:
            write_part(words.write, "recorded", recorded)
        if made_up:
            write_part(words.write, "made up", f"{words.seeds} of each kind.\n\n{made_up}")
    raise SystemExit(0 if is_kept and is_found else 1)


if __name__ == "__main__":
    main()
