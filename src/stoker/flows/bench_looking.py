"""Kept runs of benchmarks as the dashboard shows them: one with its table and charts, or two compared.

A comparison needs every request of both, a hundred times what a run has else: `stoker bench compare` reads them in a
process of its own, so that neither the daemon's memory nor its streams know of it.
"""

from __future__ import annotations

import os
import sys

import msgspec

from stoker.bench.comparing.words import name_figure, say_change, say_value
from stoker.bench.formats.names import meaning
from stoker.bench.report.charts import draw, say_cell
from stoker.bench.report.page import COLUMNS, doubts_of, find_told
from stoker.box import LocalBox
from stoker.config import Paths
from stoker.errors import BY_EXIT_CODE, NotReadyInTime, StokerError, WrongUse
from stoker.flows.bench_runs import find_run
from stoker.records import CellResult, Comparison, FigureChange
from stoker.records.looking import CellCompared, CellShown, ChangeShown, FigureShown, RunsCompared, RunShown

COMPARE = (sys.executable, "-P", "-m", "stoker", "bench", "compare", "--json", "--")
LIMIT_S = 60.0


def show_run(paths: Paths, name: str) -> RunShown:
    """Returns a run with its table and charts; raises WrongUse where there is none of that name."""
    kept = find_run(paths, name, with_requests=False)
    run = msgspec.structs.replace(kept.run, cells=())
    return RunShown(run, tuple(map(_cell, kept.run.cells)), len(kept.missing), draw(kept.run).charts)


def _cell(one: CellResult) -> CellShown:
    told = {name: figure for name in COLUMNS if (figure := find_told(one, name)) is not None}
    figures = tuple(
        FigureShown(name, meaning(name), figure.median, figure.low, figure.high, figure.name != name)
        for name, figure in told.items()
    )
    return CellShown(say_cell(one.cell), figures, doubts_of(one))


def compare_beside(paths: Paths, a: str, b: str) -> RunsCompared:
    """Returns how run b differs from run a, as `stoker bench compare` tells it."""
    for name in (a, b):
        find_run(paths, name, with_requests=False)  # whoever names none is told so in a sentence
    done = LocalBox().try_run((*COMPARE, a, b), os.environ.get("PATH", os.defpath), LIMIT_S)
    if done is None:
        raise NotReadyInTime(
            f"comparing took over {LIMIT_S:.0f} s", next_step=f"`stoker bench compare {a} {b}` has no limit"
        )
    code, said = done
    if code:
        raise BY_EXIT_CODE.get(code, StokerError)(said.strip() or f"`stoker bench compare` ended with {code}")
    try:
        return _shown(msgspec.json.decode(said, type=Comparison))
    except msgspec.MsgspecError as problem:
        raise WrongUse("what `stoker bench compare` said cannot be read", why=str(problem)) from problem


def _shown(one: Comparison) -> RunsCompared:
    cells = tuple(CellCompared(say_cell(cell.cell), tuple(map(_change, cell.figures)), cell.warnings) for cell in one.cells)
    return RunsCompared(
        one.a, one.b, one.differences, one.warnings, tuple(map(_change, one.overall)), cells,
        tuple(map(say_cell, one.only_a)), tuple(map(say_cell, one.only_b)),
    )  # fmt: skip


def _change(one: FigureChange) -> ChangeShown:
    return ChangeShown(name_figure(one), say_value(one, one.a), say_value(one, one.b), say_change(one), one.verdict)
