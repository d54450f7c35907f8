"""How soon watching finds what is wrong, and how often it cries wolf, beside the plain rule that was published.

`python -m benchmarks.watching --write docs/measured/watching.md`: every series is made with a seed, or was recorded of a
real engine (`benchmarks/watched_recording.py`), and is played in simulated time, so a busy machine changes nothing.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

from benchmarks.gateway.document import write_part
from benchmarks.watched_cases import (
    AS_RECORDED,
    DRAFT,
    FAULTS,
    HEALTHY,
    OTHER,
    RECORDED_FAULTS,
    RECORDED_HEALTHY,
    AsRecorded,
    Case,
)
from benchmarks.watched_load import HOUR_S, STEP_S
from benchmarks.watched_replay import play_as_recorded, read_looks
from benchmarks.watched_rules import Seen, watch

NEVER = float("inf")
MADE_UP, PLAYED_ON = (*FAULTS, *HEALTHY), (*RECORDED_FAULTS, *RECORDED_HEALTHY)
CASES = (*PLAYED_ON, *MADE_UP)


@dataclass(frozen=True)
class Row:
    """One case, by its place, over all seeds: delays in seconds, infinite where it was never found, and false alarms."""

    number: int
    ours_s: list[float]
    published_s: list[float]
    ours_false: int
    published_false: int

    @property
    def case(self) -> Case:
        """The case itself, which no other process can be told of."""
        return CASES[self.number]

    @property
    def is_kept(self) -> bool:
        """A fault is found, and in the middle sooner than by the published rule, where that one says what is so.

        It does not where it fires in each run before there is a fault, and where it takes other work for a fault. A
        healthy month has one false alarm at most.
        """
        if not self.case.wanted:
            return self.ours_false <= len(self.ours_s)
        is_no_match = self.published_false >= len(self.ours_s) or self.case.wanted == OTHER
        is_sooner = statistics.median(self.ours_s) < statistics.median(self.published_s)
        return NEVER not in self.ours_s and (is_sooner or is_no_match)


def judge(number: int, seeds: range) -> Row:
    """Plays a case, by its place, with every seed. Before the fault each alarm is false; after it, those of another kind."""
    case = CASES[number]
    row = Row(number, [], [], 0, 0)
    for seed in seeds:
        row = _joined(row, watch(case.player(case.load, case.trouble, case.days, seed), case.method))
    return row


def _joined(row: Row, seen: Seen) -> Row:
    case = row.case
    fault_s = case.fault_s if case.wanted else NEVER
    right = [at_s - fault_s for at_s, alert in seen.ours if at_s >= fault_s and alert in case.wanted]
    published = [at_s - fault_s for at_s in seen.published if at_s >= fault_s]
    ours_false = sum(alert in DRAFT and (at_s < fault_s or alert not in case.wanted) for at_s, alert in seen.ours)
    is_drafts_fault = case.wanted == DRAFT
    published_false = sum(at_s < fault_s or not is_drafts_fault for at_s in seen.published)
    return Row(
        row.number, [*row.ours_s, min(right, default=NEVER)], [*row.published_s, min(published, default=NEVER)],
        row.ours_false + ours_false, row.published_false + published_false,
    )  # fmt: skip


def say(delays_s: Sequence[float]) -> str:
    """Returns the middle and the longest delay, or how many were never found."""
    found = [one for one in delays_s if one != NEVER]
    if not found:
        return "never"
    unit_s, name = (60, "min") if max(found) < 4 * HOUR_S else (HOUR_S, "h")
    text = f"{statistics.median(found) / unit_s:.1f} {name} (longest {max(found) / unit_s:.1f})"
    return text if len(found) == len(delays_s) else f"{text}; {len(delays_s) - len(found)} of {len(delays_s)} never"


def replay(one: AsRecorded) -> tuple[str, bool]:
    """Returns a line of the table of what was recorded, and whether what was planted was found, and nothing else."""
    seen = watch(play_as_recorded(one.played, one.is_other_launch), "draft-simple")
    fault_s = len(read_looks(one.played[0])) * STEP_S
    ours = [(at_s - fault_s, alert) for at_s, alert in seen.ours if alert in (*DRAFT, *OTHER)]
    said = ", ".join(dict.fromkeys(alert for _, alert in ours)) or "nothing"
    after = f"{ours[0][0] / 60:.1f} min" if ours else ""
    first = min((at_s - fault_s for at_s in seen.published), default=NEVER)
    is_kept = bool(ours) == bool(one.wanted) and all(late_s >= 0 and alert in one.wanted for late_s, alert in ours)
    is_sooner = not one.wanted or (bool(ours) and ours[0][0] < first)
    published = "nothing" if first == NEVER else f"{first / 60:.1f} min"
    return f"| {one.name} | {said} | {after} | {published} |", is_kept and is_sooner


def say_replays() -> tuple[str, bool]:
    """Returns the table of what is replayed as it was recorded, and whether all is as it should be."""
    lines, kept = zip(*map(replay, AS_RECORDED), strict=True)
    heads = ["| recorded | watching says | after | the published rule |", "|---|---|--:|--:|"]
    return "\n".join([*heads, *lines]), all(kept)


def say_rows(rows: Sequence[Row]) -> str:
    """Returns the tables of faults and of healthy months."""
    count = len(rows[0].ours_s)
    heads = "| what goes wrong | watching | the published rule | false before: watching | published |"
    lines = [f"{count} of each kind.", "", heads, "|---|--:|--:|--:|--:|"]
    for row in (row for row in rows if row.case.wanted):
        is_misread = row.case.wanted == OTHER and any(one != NEVER for one in row.published_s)
        published = f"{say(row.published_s)}, as a fault of the draft" if is_misread else say(row.published_s)
        cells = row.case.name, say(row.ours_s), published, str(row.ours_false), str(row.published_false)
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", f"| a healthy month, {count} times | watching: alarms a month | the published rule |", "|---|--:|--:|"]
    for row in (row for row in rows if not row.case.wanted):
        a_month = (f"{false / count:.1f}" for false in (row.ours_false, row.published_false))
        lines.append(f"| {row.case.name} | {' | '.join(a_month)} |")
    return "\n".join(lines)


def main() -> None:
    """Prints the tables, or writes them; exits with 1 where something was not found, or not sooner."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--recorded-only", action="store_true")
    parser.add_argument("--write", type=Path, help="a page whose parts of these names are replaced")
    words = parser.parse_args()
    replayed, is_found = say_replays()
    chosen = range(len(PLAYED_ON if words.recorded_only else CASES))
    with ProcessPoolExecutor() as pool:
        rows = list(pool.map(judge, chosen, repeat(range(words.seeds))))
    parts = {"as recorded": replayed, "recorded, played on": say_rows(rows[: len(PLAYED_ON)])}
    if not words.recorded_only:
        parts["made up"] = say_rows(rows[len(PLAYED_ON) :])
    for name, text in parts.items():
        print(f"{name}\n\n{text}\n")
        if words.write:
            write_part(words.write, name, text)
    missed = [row.case.name for row in rows if not row.is_kept]
    print(f"not as promised: {', '.join(missed) or 'nothing'}")
    raise SystemExit(0 if is_found and not missed else 1)


if __name__ == "__main__":
    main()
