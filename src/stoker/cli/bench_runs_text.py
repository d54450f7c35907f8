"""How kept runs look on a terminal: a line each, or one of them with its cells as bars."""

from __future__ import annotations

import time

import click

from stoker.bench.formats.figures import find_figure
from stoker.cli.show import printable, say_bar, table, wrapped
from stoker.records import BenchFigure, BenchRun, BenchRunLine, BenchSubject, CellResult, KeptRun, say_s

UNKNOWN = "-"
HEADINGS = ("run", "when", "model", "engine", "on", "by", "cells")
CELL_HEADINGS = ("pp", "tg", "depth", "load", "TTFT", "ms/token", "t/s each", "t/s all", "accept", "")
MEAN = "*"  # stands behind what is a mean, since no values are known


def lines_text(lines: list[BenchRunLine], *, are_published: bool) -> str:
    """Returns the list of runs."""
    if not lines:
        return "No run is kept yet: `stoker bench` measures one, `stoker bench import FILE` brings another tool's."
    text = [table(HEADINGS, [_line(one) for one in lines])]
    if are_published:
        text.append("\nCompare one with a run of yours: stoker bench compare NAME RUN")
    return "\n".join(text)


def _line(one: BenchRunLine) -> tuple[str, ...]:
    cells = f"{one.cells}" if one.cells == one.asked else f"{one.cells} of {one.asked}"
    if not one.is_whole:
        cells += click.style(" unfinished", fg="yellow")
    engine = " ".join(part for part in (one.engine, one.engine_version) if part) or UNKNOWN
    name = str(one.id) if one.name is None else one.name
    return (name, _when(one.began_at), printable(one.model), engine, one.machine or UNKNOWN, one.tool, cells)


def _when(at: float | None) -> str:
    return UNKNOWN if at is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


def kept_text(kept: KeptRun) -> str:
    """Returns a run: what was measured, by what, and its cells."""
    run = kept.run
    lines = [_head(run), *_subject(run.subject)]
    if run.words:
        lines += wrapped(printable(" ".join(run.words)), "asked    ", "         ")
    if run.note:
        lines += wrapped(printable(run.note), "note     ", "         ")
    lines += ["", _cells(run.cells)] if run.cells else ["", "No cell of it was measured."]
    lines += [line for one in run.cells for line in _doubts(one)]
    if kept.missing:
        command = f"`stoker bench --resume {run.id}` with the same words measures them"
        lines += ["", f"{len(kept.missing)} of {len(kept.asked)} cells are missing; {command}."]
    return "\n".join(lines)


def _head(run: BenchRun) -> str:
    took = f", took {say_s(run.took_s)}" if run.took_s is not None else ""
    name = "" if run.id is None else f"run {run.id}  "
    tool = " ".join(part for part in (run.tool, run.tool_version) if part)
    return click.style(f"{name}{tool}, {_when(run.began_at)}{took}", bold=True)


def _subject(of: BenchSubject) -> list[str]:
    engine = " ".join(part for part in (of.engine, of.engine_version) if part)
    facts = {
        "model": of.model, "revision": of.model_revision, "engine": engine, "image": of.image_digest, "plan": of.plan_id,
        "machine": of.machine, "service": of.service, "address": of.url, "flags": " ".join(of.flags or ()),
    }  # fmt: skip
    return [line for name, fact in facts.items() if fact for line in wrapped(printable(fact), f"{name:<9}", " " * 9)]


def _cells(results: tuple[CellResult, ...]) -> str:
    rates = [_number(one, "total_decode_tps") or _number(one, "total_e2e_tps") for one in results]
    most = max((rate for rate in rates if rate), default=0.0)
    rows = [_cell(one, rate, most) for one, rate in zip(results, rates, strict=True)]
    text = table(CELL_HEADINGS, rows)
    return (
        f"{text}\n{MEAN} a mean; what it comes from is not known"
        if any(MEAN in cell for row in rows for cell in row)
        else text
    )


def _cell(one: CellResult, rate: float | None, most: float) -> tuple[str, ...]:
    cell = one.cell
    rate_name = "total_decode_tps" if _number(one, "total_decode_tps") else "total_e2e_tps"
    return (
        str(cell.prompt_tokens), UNKNOWN if cell.new_tokens is None else str(cell.new_tokens), str(cell.depth_tokens),
        load_text(one), _said(one, "ttft_s", 1000, " ms"), _said(one, "itl_token_s", 1000), _said(one, "request_decode_tps"),
        _said(one, rate_name), _accepted(one), say_bar(rate or 0.0, most),
    )  # fmt: skip


def load_text(one: CellResult) -> str:
    """Returns how requests came, in few words: c8, or 2.5/s poisson."""
    load = one.cell.load
    if load.arrivals == "closed":
        return f"c{load.concurrency}"
    return load.arrivals if load.rate_per_s is None else f"{load.rate_per_s:g}/s {load.arrivals}"


def _figure(one: CellResult, name: str) -> BenchFigure | None:
    return find_figure(one, name) or find_figure(one, f"mean_{name}")


def _number(one: CellResult, name: str) -> float | None:
    found = _figure(one, name)
    return found.median if found else None


def _said(one: CellResult, name: str, factor: float = 1.0, unit: str = "") -> str:
    found = _figure(one, name)
    if found is None:
        return UNKNOWN
    return f"{say_number(found.median * factor)}{unit}{MEAN if found.name != name else ''}"


def say_number(value: float) -> str:
    """Returns a number with as many digits as a measurement has: 1,253, 43.1, 4.98."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _accepted(one: CellResult) -> str:
    seen = one.speculation
    if seen is None:
        return UNKNOWN
    rate = UNKNOWN if seen.accept_rate is None else f"{seen.accept_rate:.0%}"
    return rate if seen.accept_length is None else f"{rate}, {seen.accept_length:.2f} a step"


def _doubts(one: CellResult) -> list[str]:
    cell = f"pp{one.cell.prompt_tokens} @ d{one.cell.depth_tokens}, {load_text(one)}"
    texts = [*one.warnings, *(f"{times} times: {printable(text)}" for text, times in one.errors)]
    if one.failed:
        texts.append(f"{one.failed} of {one.asked} requests failed; they are in no figure")
    return [click.style(line, fg="yellow") for text in texts for line in wrapped(printable(text), f"! {cell}: ", "    ")]
