"""Kept runs of benchmarks: how they are listed, and what is asked of one that was interrupted."""

from __future__ import annotations

from typing import Literal

from stoker.records.base import Record
from stoker.records.bench import BenchCell, BenchRun


class KeptRun(Record, frozen=True):
    """A run with the cells that were asked of it; those that it lacks were not measured yet."""

    run: BenchRun
    asked: tuple[BenchCell, ...]

    @property
    def missing(self) -> tuple[BenchCell, ...]:
        """The cells that were asked for and not measured to their end, in order."""
        measured = {result.cell for result in self.run.cells if result.is_whole}
        return tuple(cell for cell in self.asked if cell not in measured)


class BenchRunLine(Record, frozen=True):
    """One line of the list of runs; `cells` of the `asked` are measured. Published runs have a `name`, kept ones an `id`."""

    id: int | None
    name: str | None
    began_at: float | None
    tool: str
    model: str
    service: str | None
    engine: str | None
    engine_version: str | None
    machine: str | None
    cells: int
    asked: int
    is_whole: bool
    note: str = ""


class Difference(Record, frozen=True):
    """Something that two runs do not have in common; None is unknown."""

    what: str
    a: str | None
    b: str | None


# `better` and `worse` only where a test says so; `alike`: it does not; `too few`: there are not enough repeats for any test
# to; `means`: one of the two gives no values, so that nobody can tell how sure it is.
ChangeVerdict = Literal["better", "worse", "alike", "too few", "means"]


class FigureChange(Record, frozen=True):
    """How a figure changed from one run to another: `ratio` is b / a, with its interval at `level`.

    `a` and `b` are medians of the repeats' medians, or means. `count_a` and `count_b` are the repeats. `p` is the test's,
    and `p_holm` the same among all cells; None where there are too few repeats for it to become small.
    """

    name: str
    a: float
    b: float
    ratio: float
    low: float | None
    high: float | None
    count_a: int
    count_b: int
    is_paired: bool
    p: float | None
    p_holm: float | None
    verdict: ChangeVerdict
    level: float = 0.95


class CellChange(Record, frozen=True):
    """A cell that both runs have, with its figures, and what makes comparing them doubtful."""

    cell: BenchCell
    figures: tuple[FigureChange, ...]
    warnings: tuple[str, ...] = ()


class Comparison(Record, frozen=True):
    """Two runs: what differs between them, what is doubtful, each cell, and each figure over all cells together.

    `only_a` and `only_b` are cells that the other does not have.
    """

    a: BenchRun
    b: BenchRun
    differences: tuple[Difference, ...]
    warnings: tuple[str, ...]
    cells: tuple[CellChange, ...]
    overall: tuple[FigureChange, ...]
    only_a: tuple[BenchCell, ...]
    only_b: tuple[BenchCell, ...]
