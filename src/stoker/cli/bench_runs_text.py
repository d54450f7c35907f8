"""How kept runs look on a terminal: a line each, or one of them with its cells as a table and as bars."""

from __future__ import annotations

import time

import click

from stoker.cli.bench_text import UNKNOWN, cell_text, figure_of, run_text
from stoker.cli.show import printable, say_bar, table, wrapped
from stoker.records import BenchRun, BenchRunLine, BenchSubject, CellResult, KeptRun, say_s

HEADINGS = ("run", "when", "model", "engine", "on", "by", "cells")
PUBLISHED_HEADINGS = ("name", "model", "engine", "by", "cells")
INDENT = " " * 9
# What bars show, and how it is called: the first that a run has.
RATES = {"total_e2e_tps": "e2e t/s all", "total_decode_tps": "decode t/s all", "request_decode_tps": "decode t/s each"}


def lines_text(lines: list[BenchRunLine]) -> str:
    """Returns the list of kept runs."""
    if not lines:
        return "No run is kept yet: `stoker bench` measures one, `stoker bench import FILE` brings another tool's."
    return table(HEADINGS, [_line(one) for one in lines])


def _line(one: BenchRunLine) -> tuple[str, ...]:
    cells = f"{one.cells}" if one.cells == one.asked else f"{one.cells} of {one.asked}"
    if not one.is_whole:
        cells += click.style(" unfinished", fg="yellow")
    return (str(one.id), _when(one.began_at), printable(one.model), _engine(one), one.machine or UNKNOWN, one.tool, cells)


def published_text(lines: list[BenchRunLine]) -> str:
    """Returns the list of what others published."""
    rows = [(one.name or "", one.model, _engine(one), one.tool, str(one.cells)) for one in lines]
    return f"{table(PUBLISHED_HEADINGS, rows)}\n\nBeside a run of yours: stoker bench compare published:NAME last"


def _engine(one: BenchRunLine | BenchSubject) -> str:
    engine = " ".join(part for part in (one.engine, one.engine_version) if part)
    return printable(engine) or UNKNOWN


def _when(at: float | None) -> str:
    return UNKNOWN if at is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


def kept_text(kept: KeptRun) -> str:
    """Returns a run: what was measured, by what, its cells, and what is missing."""
    run = kept.run
    lines = [_head(run), *_facts(run), "", run_text(run)]
    lines += ["", *_bars(run.cells)] if len(run.cells) > 1 else []
    if kept.missing:
        number = "" if run.id is None else f" {run.id}"
        how = f"`stoker bench --resume{number or ' last'}` measures them"
        lines += ["", *wrapped(f"{len(kept.missing)} of {len(kept.asked)} cells are missing: {how}.")]
    return "\n".join(lines)


def _head(run: BenchRun) -> str:
    took = f", took {say_s(run.took_s)}" if run.took_s is not None else ""
    when = "" if run.began_at is None else f", {_when(run.began_at)}"
    name = "" if run.id is None else f"run {run.id}: "
    return click.style(f"{name}{f'{run.tool} {run.tool_version}'.strip()}{when}{took}", bold=True)


def _facts(run: BenchRun) -> list[str]:
    of = run.subject
    facts = {
        "model": of.model, "revision": of.model_revision, "engine": _engine(of), "image": of.image_digest,
        "plan": of.plan_id, "machine": of.machine, "box": of.box, "service": of.service, "address": of.url,
        "flags": " ".join(of.flags or ()), "asked": " ".join(run.words), "note": run.note,
    }  # fmt: skip
    known = {name: printable(fact) for name, fact in facts.items() if fact and fact != UNKNOWN}
    return [line for name, fact in known.items() for line in wrapped(fact, f"{name:<9}", INDENT)]


def _bars(cells: tuple[CellResult, ...]) -> list[str]:
    name = next((name for name in RATES if any(figure_of(one, name) for one in cells)), None)
    if name is None:
        return []
    rates = [figure.median if (figure := figure_of(one, name)) else 0.0 for one in cells]
    rows = [(cell_text(one.cell), f"{rate:,.1f}", say_bar(rate, max(rates))) for one, rate in zip(cells, rates, strict=True)]
    return [table(("", RATES[name], ""), rows)]
