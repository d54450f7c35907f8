"""Writes runs as llama-benchy 0.4.0 does, so that whatever reads its files reads ours.

What it defines in another way than we do is made by its definition: its prefill rate counts from the first chunk of any
kind, and we know that time too. Cells that it cannot express are left out by name; what is not known is null or empty.
"""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from stoker.bench.formats.figures import deviation, find_figure, mean
from stoker.bench.formats.llama_benchy import CONTEXT_LOAD, METRICS, MS, PP_REQUEST, PP_TOTAL, TOOL
from stoker.bench.formats.llama_benchy_json import TIME
from stoker.bench.formats.llama_benchy_tables import CSV_HEADER, DECODE, MARKDOWN_HEADERS, ONE_AT_A_TIME, PREFILL
from stoker.records import BenchCell, BenchRun, CellResult

INDENT = 2
LATENCY_MODE, PREFIX_CACHING = "--latency-mode", "--enable-prefix-caching"


class Metric(NamedTuple):
    """A metric in llama-benchy's unit; `values` is empty where they are not known."""

    mean: float
    std: float
    values: tuple[float, ...]


def what_it_cannot_say(cell: BenchCell) -> str:
    """Returns why llama-benchy has no such cell; empty: it has."""
    if cell.load.arrivals != "closed" or cell.load.concurrency is None:
        return f"requests that come at a rate ({cell.load.arrivals})"
    if cell.turns > 1:
        return "conversations of several turns"
    return "" if cell.new_tokens is not None or cell.content == CONTEXT_LOAD else "an answer of unknown length"


def expressible(run: BenchRun) -> list[CellResult]:
    """Returns the cells that llama-benchy's files can hold."""
    return [result for result in run.cells if not what_it_cannot_say(result.cell)]


def render_json(run: BenchRun) -> str:
    """Returns the run as llama-benchy's JSON."""
    cells = expressible(run)
    ours = run.tool != TOOL
    report: dict[str, Any] = {
        "version": f"{run.tool} {run.tool_version}" if ours else run.tool_version,
        "timestamp": time.strftime(TIME, time.gmtime((run.began_at or 0.0) + (run.took_s or 0.0))),
        "latency_mode": _word_after(run.words, LATENCY_MODE) if not ours else "none",
        "latency_ms": _latency_ms(cells),
        "model": run.subject.model,
        "prefix_caching_enabled": PREFIX_CACHING in run.words or any(one.cell.shares_prefix for one in cells),
        "max_concurrency": _most(cells),
        "benchmarks": [_benchmark(one, cells[place + 1 :]) for place, one in enumerate(cells)],
    }
    return json.dumps(report, indent=INDENT)


def _word_after(words: Sequence[str], option: str) -> str:
    return words[words.index(option) + 1] if option in words else "none"


def _most(cells: list[CellResult]) -> int:
    return max((one.cell.load.concurrency or 1 for one in cells), default=1)


def _latency_ms(cells: list[CellResult]) -> float:
    """Returns what was subtracted of each first chunk's time; nothing is, of our own."""
    for one in cells:
        first, estimate = find_figure(one, "first_chunk_s"), find_figure(one, "est_prefill_s")
        if first is not None and estimate is not None and first.values:
            return (mean(first.values) - mean(estimate.values)) * MS
    return 0.0


def _benchmark(one: CellResult, later: list[CellResult]) -> dict[str, Any]:
    cell, is_context = one.cell, one.cell.content == CONTEXT_LOAD
    metrics = {name: _metric(one, name) for name in METRICS}
    return {
        "concurrency": cell.load.concurrency,
        "context_size": cell.prompt_tokens if is_context else cell.depth_tokens,
        "prompt_size": _of_follower(one, later).prompt_tokens,
        "response_size": _of_follower(one, later).new_tokens,
        "is_context_prefill_phase": is_context,
        **{name: metric._asdict() if metric else None for name, metric in metrics.items()},
        "throughput_over_time": None,
        "requests_throughput_over_time": None,
    }


def _of_follower(one: CellResult, later: list[CellResult]) -> BenchCell:
    """Returns the cell; of a context's load, the cell after it that made use of the load."""
    if one.cell.content != CONTEXT_LOAD:
        return one.cell
    return next((each.cell for each in later if each.cell.content != CONTEXT_LOAD), one.cell)


def _metric(one: CellResult, name: str) -> Metric | None:
    if name == PP_TOTAL and one.cell.load.concurrency == 1:
        name = PP_REQUEST
    kind = METRICS[name]
    figure = find_figure(one, kind.figure)
    values = figure.values if figure else _derived(one, kind.figure)
    if values:
        told = tuple(value * kind.unit for value in values)
        return Metric(mean(told), deviation(told), told)
    middle, spread = (find_figure(one, f"{part}_{kind.figure}") for part in ("mean", "std"))
    return Metric(middle.median * kind.unit, spread.median * kind.unit, ()) if middle and spread else None


def _derived(one: CellResult, figure: str) -> tuple[float, ...]:
    """Returns values that llama-benchy has and we have not, from the time of the first chunk: we subtract no latency."""
    first = find_figure(one, "first_chunk_s")
    values = first.values if first else ()
    if figure == "est_prefill_s":
        return values
    if figure != "first_chunk_prefill_tps":
        return ()
    cached = one.cell.depth_tokens if one.cell.shares_prefix else 0
    return tuple((one.cell.prompt_tokens + one.cell.depth_tokens - cached) / value for value in values if value > 0)


def _rows(run: BenchRun) -> Iterator[tuple[str, dict[str, Metric]]]:
    """Gives the tables' rows: a test's name, and the metrics of its columns."""
    cells = expressible(run)
    has_load = _most(cells) > 1
    for one in cells:
        cell, is_context = one.cell, one.cell.content == CONTEXT_LOAD
        depth = cell.prompt_tokens if is_context else cell.depth_tokens
        end = f"{f' @ d{depth}' if depth else ''}{f' (c{cell.load.concurrency})' if has_load else ''}"
        sizes = ("", "") if is_context else (cell.prompt_tokens, cell.new_tokens)
        for phase, size, columns in (("pp", sizes[0], PREFILL), ("tg", sizes[1], DECODE)):
            told = {column: metric for column, name in columns.items() if (metric := _metric(one, name)) is not None}
            if told:
                yield f"{'ctx_' if is_context else ''}{phase}{size}{end}", told


def render_csv(run: BenchRun) -> str:
    """Returns the run as llama-benchy's CSV."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(CSV_HEADER)
    for test, told in _rows(run):
        cells = {f"{column}_{part}": getattr(metric, part) for column, metric in told.items() for part in ("mean", "std")}
        writer.writerow([run.subject.model, test, *(cells.get(name) for name in CSV_HEADER[2:])])
    return out.getvalue()


def render_markdown(run: BenchRun) -> str:
    """Returns the run as llama-benchy's Markdown table, without a line's end at its end, as there."""
    by_columns = {columns: header for header, columns in MARKDOWN_HEADERS.items()}
    columns = next(each for each in by_columns if (each == ONE_AT_A_TIME) == (_most(expressible(run)) == 1))
    rows = [(run.subject.model, test, *(_text(told.get(column)) for column in columns)) for test, told in _rows(run)]
    header = by_columns[columns]
    # tabulate leaves a column two places wider than its heading, and as wide as what is in it.
    widths = [
        max([len(head) + (2 if place else 0), *(len(row[place]) for row in rows)]) for place, head in enumerate(header)
    ]
    lines = [_line(header, widths), _rule(widths), *(_line(row, widths) for row in rows)]
    return "\n".join(lines)


def _text(metric: Metric | None) -> str:
    return f"{metric.mean:.2f} ± {metric.std:.2f}" if metric else ""


def _line(cells: Sequence[str], widths: list[int]) -> str:
    first = f"{cells[0]:<{widths[0]}}"
    rest = [f"{cell:>{width}}" for cell, width in zip(cells[1:], widths[1:], strict=True)]
    return f"| {' | '.join((first, *rest))} |"


def _rule(widths: list[int]) -> str:
    return "|".join(("", ":" + "-" * (widths[0] + 1), *("-" * (width + 1) + ":" for width in widths[1:]), ""))
