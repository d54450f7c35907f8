"""The kept runs: listed, found by number or name, brought from other tools' files and written as theirs."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import msgspec

from stoker.bench.comparing.compare import compare
from stoker.bench.formats.llama_benchy_out import expressible, render_csv, render_json, render_markdown, what_it_cannot_say
from stoker.bench.formats.own import render_own
from stoker.bench.formats.read import read_results
from stoker.bench.published import load_published
from stoker.config import Paths
from stoker.errors import Refused, StokerError, WrongUse, near_miss
from stoker.flows.ownership import make_state_folder
from stoker.flows.reading import read_text
from stoker.records import BenchRun, BenchRunLine, Comparison, KeptRun
from stoker.store.bench import BenchStore, read_bench_lines, read_bench_run

MOST_BYTES = 256 * 1024**2
PUBLISHED, LAST = "published:", "last"
RENDER = {"json": render_json, "csv": render_csv, "md": render_markdown}


class Exported(NamedTuple):
    """A run as text, and what that form cannot hold of it."""

    text: str
    left_out: tuple[str, ...]


def list_runs(paths: Paths, *, are_published: bool = False) -> list[BenchRunLine]:
    """Returns the kept runs, the last first, or those that others published."""
    if not are_published:
        return read_bench_lines(paths.bench_database)
    return [_line(name, run) for name, run in load_published().items()]


def _line(name: str, run: BenchRun) -> BenchRunLine:
    of, count = run.subject, len(run.cells)
    return BenchRunLine(None, name, run.began_at, run.tool, of.model, of.service, of.engine, of.engine_version, of.machine,
                        count, count, run.is_whole, run.note)  # fmt: skip


def find_run(paths: Paths, name: str, *, with_requests: bool = True) -> KeptRun:
    """Returns a run by its number, `last`, or `published:NAME`; raises WrongUse where there is none.

    Its requests are a hundred times as large as the rest, and left out where nobody asks for single ones.
    """
    if name.startswith(PUBLISHED):
        return _published(name.removeprefix(PUBLISHED))
    if name == LAST:
        lines = read_bench_lines(paths.bench_database, most=1)
        if not lines:
            raise WrongUse("no run is kept yet", next_step="`stoker bench` measures one, `stoker bench import` brings one")
        name = str(lines[0].id)
    if not (name.isascii() and name.isdecimal()):
        raise WrongUse(
            f"{name!r} is no run",
            why="a run is named by its number, `last`, or `published:NAME`",
            next_step="`stoker bench list`",
        )
    return read_bench_run(paths.bench_database, min(int(name), 2**63 - 1), with_requests=with_requests)


def _published(name: str) -> KeptRun:
    known = load_published()
    if name not in known:
        near = near_miss(name, known, "`stoker bench list --published` shows them")
        raise WrongUse(f"nothing is published here as `{name}`", next_step=near)
    return KeptRun(known[name], tuple(result.cell for result in known[name].cells))


def import_results(paths: Paths, file: Path, model: str | None = None, machine: str | None = None) -> KeptRun:
    """Keeps the run of another tool's file, measured on `machine`, and returns it with its number."""
    run = read_results(read_text(file, "a file of results", MOST_BYTES), str(file), model)
    if machine is not None:
        run = msgspec.structs.replace(run, subject=msgspec.structs.replace(run.subject, machine=machine))
    make_state_folder(paths)
    with closing(BenchStore(paths.bench_database)) as store:
        number = store.write(run)
    return read_bench_run(paths.bench_database, number)


def compare_runs(paths: Paths, a: str, b: str, *, all_figures: bool = False) -> Comparison:
    """Returns how run b differs from run a; raises WrongUse where there is no such run."""
    return compare(find_run(paths, a).run, find_run(paths, b).run, all_figures=all_figures)


def without_requests(kept: KeptRun) -> KeptRun:
    """Returns a run without what it has of single requests. Pure."""
    cells = tuple(msgspec.structs.replace(one, repeats=()) for one in kept.run.cells)
    return msgspec.structs.replace(kept, run=msgspec.structs.replace(kept.run, cells=cells))


def write_text(file: Path, text: str) -> None:
    """Writes a file as it is, line ends and all; raises StokerError where the disk does not take it."""
    try:
        file.write_bytes(text.encode())
    except OSError as problem:
        raise StokerError(
            f"{file} cannot be written", why=problem.strerror or str(problem), next_step="name another file"
        ) from problem


def export_run(paths: Paths, name: str, form: str) -> Exported:
    """Returns a run in llama-benchy's form (`json`, `csv`, `md`), or whole in our own (`stoker`); raises Refused."""
    run = find_run(paths, name).run
    if form not in RENDER:
        return Exported(render_own(run), ())
    left_out = tuple(
        f"pp{one.cell.prompt_tokens} @ d{one.cell.depth_tokens}: {why}" for one in run.cells
        if (why := what_it_cannot_say(one.cell))
    )  # fmt: skip
    if not expressible(run):
        raise Refused(
            f"llama-benchy's files cannot hold run {name}", why="; ".join(left_out) or "it has no cells",
            next_step="--format stoker writes the whole run",
        )  # fmt: skip
    return Exported(RENDER[form](run), left_out)
