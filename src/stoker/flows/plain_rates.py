"""Finds what a service was measured to give without drafts, among the kept runs of benchmarks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from stoker.box import LocalBox
from stoker.records import BenchRun, CellResult
from stoker.store.bench import read_bench_lines, read_bench_run

LOOKED_THROUGH = 200
FIGURE = "total_decode_tps"
DRAFTS = ("--spec", "--speculative")


def find_plain_rate(database: Path, service: str, revision: str, requests: int) -> tuple[float, int] | None:
    """Returns the last rate of all requests together, and its run: of these files, on this machine, without drafts."""
    machine = LocalBox().uname()[0]
    for line in read_bench_lines(database, LOOKED_THROUGH):
        if line.service == service and line.machine == machine and line.id is not None:
            run = read_bench_run(database, line.id, with_requests=False).run
            if run.subject.model_revision == revision and not _drafts(run):
                for rate in _rates(run, requests):
                    return rate, line.id
    return None


def _drafts(run: BenchRun) -> bool:
    return any(word.startswith(DRAFTS) for word in run.subject.flags or ())


def _rates(run: BenchRun, requests: int) -> Iterator[float]:
    for cell in run.cells:
        if _is_plain(cell) and cell.cell.load.arrivals == "closed" and cell.cell.load.concurrency == requests:
            yield from (one.median for one in cell.figures if one.name == FIGURE)


def _is_plain(cell: CellResult) -> bool:
    return cell.is_whole and not cell.failed and cell.speculation is None
