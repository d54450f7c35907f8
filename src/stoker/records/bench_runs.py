"""Kept runs of benchmarks: how they are listed, and what is asked of one that was interrupted."""

from __future__ import annotations

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
