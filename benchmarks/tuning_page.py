"""What came of tuning beside a sweep, row by row, and the page that says it. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from itertools import groupby

from stoker.records import Band, Record
from stoker.tune.ratios import student_t
from stoker.tune.showing import with_starts

NEAR = 0.03
BY_HAND = "<!-- What follows is written by hand, and stays. -->\n"
HEAD = """# Tuning beside a sweep

<!-- Written by benchmarks/tuning.py. -->

The demo model with its draft model, without a GPU. `python -m benchmarks.tuning`{missing}

Within 3 % of the sweep's best with at most half of its starts:

{verdicts}
| engine | content | seed | chosen | best of the sweep | behind | rounds | starts | of | took | sweep |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""
FOOT = """
The sweep has all ways up at once and asks them the same prompt in turn, round by round, so that what the machine does
meanwhile falls out. A way that is slower than the fastest beyond chance (99 in 100), or not faster than the choice by
3 %, is asked no more, and a sweep ends once it is told beyond chance whether any is. *Behind* is how much slower the choice
was than the sweep's best in the geometric mean of the rounds, with the interval that holds it 95 times in 100. The best
of many figures is too high by chance, so in the odd rounds it is compared with the best of the even ones, and in the
even rounds with the best of the odd ones. Starts: all of the tuning, and one more for the choice to run; that the
sweep's best has to be started once more too is counted where halves are compared.

The same way, measured once by the tuning and once by the sweep, differed by {noise:.1%} (the middle of {noises}; one in ten
by more than {noisy:.1%}): so much of a figure is its start's and its minute's own. Of the ways that were predicted and never
tried, the sweep found {held} of {predicted} inside their bands, which should hold four in five; less what the machine
changed for all ways alike from the tuning to the sweep, {level} of {predicted}.
"""


class Figure(Record, frozen=True):
    """What is known of one way: what tuning measured or predicted, and what the sweep gave."""

    way: str
    tuned_tok_s: float | None
    predicted: Band | None
    swept_tok_s: float | None
    accept_length: float | None = None


class Row(Record, frozen=True):
    """One tuning beside its sweep; `turns` are rates of both in each round, none where they are one way.

    `counts_starts`: its bands are as wide as a start's own luck needs them; those of older rows are widened here.
    """

    engine: str
    content: str
    seed: int
    chosen: str
    best: str
    turns: tuple[tuple[float, float], ...]
    starts: int
    sweep_starts: int
    took_s: float
    sweep_s: float
    why: str
    figures: tuple[Figure, ...]
    machine: str
    day: str
    version: str
    measure_s: float
    counts_starts: bool = False

    @property
    def key(self) -> tuple[str, str, int]:
        """What was asked."""
        return self.engine, self.content, self.seed

    @property
    def is_same(self) -> bool:
        """Whether the choice is the sweep's best itself, by whichever half of the rounds."""
        return self.chosen == self.best and not self.turns

    @property
    def behind(self) -> float | None:
        """How far the choice is behind, as a share; None where no round came to its end."""
        if self.is_same or not self.turns:
            return 0.0 if self.is_same else None
        return -math.expm1(statistics.fmean(self._logs()))

    @property
    def behind_between(self) -> tuple[float, float] | None:
        """The interval that holds that 95 times in 100; None with fewer than three rounds."""
        logs = self._logs()
        if len(logs) < 3:
            return None
        middle, half = statistics.fmean(logs), student_t(0.95, len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
        return -math.expm1(middle + half), -math.expm1(middle - half)

    def _logs(self) -> list[float]:
        return [math.log(one / other) for one, other in self.turns]

    @property
    def is_good(self) -> bool:
        """Whether it is within 3 %, with at most half of the starts."""
        is_near = self.behind is not None and self.behind <= NEAR
        return is_near and 2 * self.starts <= self.sweep_starts + 1  # the sweep's best is to be started once more too


def differences(rows: Sequence[Row]) -> list[float]:
    """Returns by which share a way's two starts differed, those of each way and row, the least first."""
    pairs = [(one.tuned_tok_s, one.swept_tok_s) for row in rows for one in row.figures]
    return sorted(math.expm1(abs(math.log(one / other))) for one, other in pairs if one and other)


def drift_of(row: Row) -> float:
    """Returns by what logarithm the sweep's figures of a row lie above the tuning's, in the mean of those that both have."""
    logs = [math.log(one.swept_tok_s / one.tuned_tok_s) for one in row.figures if one.swept_tok_s and one.tuned_tok_s]
    return statistics.fmean(logs) if logs else 0.0


def bands(rows: Sequence[Row]) -> tuple[int, int, int]:
    """Returns how many bands of ways that were not tried hold what the sweep gave, and that less its drift; and all."""
    found = [
        (one.predicted if row.counts_starts else with_starts(one.predicted), one.swept_tok_s, drift_of(row))
        for row in rows for one in row.figures if one.tuned_tok_s is None and one.predicted
    ]  # fmt: skip
    told = [
        [band.low_tok_s <= rate * math.exp(-less) <= band.high_tok_s for less in (0.0, drift)] for band, rate, drift in found
        if rate and band.low_tok_s is not None and band.high_tok_s is not None
    ]  # fmt: skip
    return sum(held for held, _ in told), sum(level for _, level in told), len(told)


def render(rows: Sequence[Row], missing: Sequence[str] = ()) -> str:
    """Returns the page; `missing` are rows that were wanted and did not end."""
    rows = sorted(rows, key=lambda row: row.key)
    noise, (held, level, predicted) = differences(rows) or [0.0], bands(rows)
    head = HEAD.format(
        verdicts="".join(verdict_of(list(own)) for _, own in groupby(rows, lambda row: row.engine)),
        missing=f" Rows that did not end: {', '.join(missing)}." if missing else "",
    )
    noisy = noise[int(0.9 * (len(noise) - 1))]
    foot = FOOT.format(
        noise=statistics.median(noise), noises=len(noise), noisy=noisy, held=held, level=level, predicted=predicted
    )
    return head + "".join(map(line_of, rows)) + foot


def verdict_of(rows: Sequence[Row]) -> str:
    """Returns how many rows of an engine are good, and where, when and how they were measured."""
    first, good = rows[0], sum(row.is_good for row in rows)
    days = " to ".join(sorted({min(row.day for row in rows), max(row.day for row in rows)}))
    return (
        f"- {first.engine}: **{good} of {len(rows)}** ({days}, Stoker {first.version}, {first.machine} a row; each way is"
        f" measured to 3 % or for {first.measure_s:g} s)\n"
    )


def with_notes(page: str, before: str) -> str:
    """Returns the page with what was written by hand below the one before it."""
    _, mark, notes = before.partition(BY_HAND)
    return f"{page}\n{mark}{notes}" if mark else page


def line_of(row: Row) -> str:
    """Returns a row of the table."""
    behind = "the same" if row.is_same else "-" if row.behind is None else say_behind(row)
    asked = f"{row.engine} | {row.content} | {row.seed} | {row.chosen} | {row.best}"
    cost = f"{row.starts} | {row.sweep_starts} | {row.took_s:.0f} s | {row.sweep_s:.0f} s"
    return f"| {asked} | {behind} | {len(row.turns)} | {cost} |\n"


def say_behind(row: Row) -> str:
    """Returns how far it is behind, and between what bounds."""
    between = row.behind_between
    return f"{row.behind:.1%}" + (f" ({between[0]:.1%} to {between[1]:.1%})" if between else "")
