"""What came of tuning beside a sweep, row by row, and the page that says it. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from stoker.records import Band, Record

NEAR = 0.03
BY_HAND = "<!-- What follows is written by hand, and stays. -->\n"
HEAD = """# Tuning beside a sweep

<!-- Written by benchmarks/tuning.py. -->

{day}, Stoker {version}, {machine} a row, no GPU: the demo model with its draft model; each way is measured to 3 % or for
{measure:g} s. `python -m benchmarks.tuning`{missing}

Within 3 % of the sweep's best with at most half of its starts: **{good} of {count}**.

| engine | content | seed | chosen | best of the sweep | behind | turns | starts | of | took | sweep |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""
FOOT = """
The best of many figures is too high by chance. So where the choice was not the sweep's best, both were started again in
turns, and the middle of these pairs alone says how far it is *behind* (less than nothing: it was faster), with the lowest
and the highest of them. Starts: all of the tuning, and one more for the choice to run.

The same way, started once by the tuning and once by the sweep, differed by {noise:.1%} (the middle of {noises}; one in ten
by more than {noisy:.1%}): so much of each figure is the start's own. Of the ways that were predicted and never tried, the
sweep found {held} of {predicted} inside their bands, which should hold four in five.
"""


class Figure(Record, frozen=True):
    """What is known of one way: what tuning measured or predicted, and what the sweep gave."""

    way: str
    tuned_tok_s: float | None
    predicted: Band | None
    swept_tok_s: float | None
    accept_length: float | None = None


class Row(Record, frozen=True):
    """One tuning beside its sweep; `turns` are rates of the choice and of the sweep's best, none where they are one way."""

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

    @property
    def key(self) -> tuple[str, str, int]:
        """What was asked."""
        return self.engine, self.content, self.seed

    @property
    def is_same(self) -> bool:
        """Whether the choice is the sweep's best itself."""
        return self.chosen == self.best

    @property
    def each_behind(self) -> list[float]:
        """How far the choice was behind in each turn, as a share, the least first."""
        return [0.0] if self.is_same else sorted(1 - one / other for one, other in self.turns)

    @property
    def behind(self) -> float | None:
        """How far the choice is behind; None where no turn came to its end."""
        return statistics.median(self.each_behind) if self.each_behind else None

    @property
    def is_good(self) -> bool:
        """Whether it is within 3 %, with at most half of the starts."""
        return self.behind is not None and self.behind <= NEAR and 2 * self.starts <= self.sweep_starts


def differences(rows: Sequence[Row]) -> list[float]:
    """Returns by which share a way's two starts differed, those of each way and row, the least first."""
    pairs = [(one.tuned_tok_s, one.swept_tok_s) for row in rows for one in row.figures]
    return sorted(math.expm1(abs(math.log(one / other))) for one, other in pairs if one and other)


def bands(rows: Sequence[Row]) -> tuple[int, int]:
    """Returns how many bands of ways that were not tried hold what the sweep gave, and how many there are."""
    found = [(one.predicted, one.swept_tok_s) for row in rows for one in row.figures if one.tuned_tok_s is None]
    told = [(band.low_tok_s <= rate <= band.high_tok_s) for band, rate in found
            if band and rate and band.low_tok_s is not None and band.high_tok_s is not None]  # fmt: skip
    return sum(told), len(told)


def render(rows: Sequence[Row], missing: Sequence[str] = ()) -> str:
    """Returns the page; `missing` are rows that were wanted and did not end."""
    rows = sorted(rows, key=lambda row: row.key)
    first, noise, (held, predicted) = rows[0], differences(rows) or [0.0], bands(rows)
    head = HEAD.format(
        day=first.day, version=first.version, machine=first.machine, measure=first.measure_s,
        good=sum(row.is_good for row in rows), count=len(rows),
        missing=f" Rows that did not end: {', '.join(missing)}." if missing else "",
    )  # fmt: skip
    noisy = noise[int(0.9 * (len(noise) - 1))]
    foot = FOOT.format(noise=statistics.median(noise), noises=len(noise), noisy=noisy, held=held, predicted=predicted)
    return head + "".join(map(line_of, rows)) + foot


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
    """Returns the middle of the turns, and how far they lie apart."""
    each = row.each_behind
    return f"{row.behind:.1%} ({each[0]:.1%} to {each[-1]:.1%})"
