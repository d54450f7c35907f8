"""Reads llama-benchy's CSV and Markdown, which have means and deviations and no values."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator
from typing import NamedTuple

from stoker.bench.formats.figures import number_of
from stoker.bench.formats.llama_benchy import METRICS, TEST, make_cell, make_result, make_run, metric_names
from stoker.bench.formats.strict import refusal
from stoker.records import BenchFigure, BenchRun, CellResult

# What the columns of a row tell, by the phase that the row is of.
PREFILL = {
    "t_s": "pp_throughput", "t_s_req": "pp_req_throughput", "ttfr": "ttfr", "est_ppt": "est_ppt", "e2e_ttft": "e2e_ttft",
}  # fmt: skip
DECODE = {
    "t_s": "tg_throughput", "t_s_req": "tg_req_throughput", "peak_ts": "peak_throughput",
    "peak_ts_req": "peak_req_throughput",
}  # fmt: skip
COLUMNS = ("t_s", "t_s_req", "peak_ts", "peak_ts_req", "ttfr", "est_ppt", "e2e_ttft")
CSV_HEADER = ("model", "test_name", *(f"{column}_{part}" for column in COLUMNS for part in ("mean", "std")))
ONE_AT_A_TIME = ("t_s", "peak_ts", "ttfr", "est_ppt", "e2e_ttft")
MARKDOWN_HEADERS = {
    ("model", "test", "t/s", "peak t/s", "ttfr (ms)", "est_ppt (ms)", "e2e_ttft (ms)"): ONE_AT_A_TIME,
    ("model", "test", "t/s (total)", "t/s (req)", "peak t/s", "peak t/s (req)", "ttfr (ms)", "est_ppt (ms)",
     "e2e_ttft (ms)"): COLUMNS,
}  # fmt: skip
FOOTER_VERSION = re.compile(r"llama-benchy \(([^)]+)\)")
Values = dict[str, tuple[float, float]]


class Row(NamedTuple):
    """One row: the half of a cell that one phase tells."""

    place: str
    model: str
    test: str
    is_context: bool
    is_prefill: bool
    size: int | None
    depth: int
    concurrency: int
    values: Values


def read_csv(text: str, name: str) -> BenchRun:
    """Returns the run of a CSV file; raises WrongUse with the row of what is wrong."""
    lines = list(csv.reader(text.splitlines()))
    if tuple(lines[0]) != CSV_HEADER:
        raise refusal(name, "row 1", "these are not the columns of llama-benchy's CSV")
    rows = [_csv_row(line, f"row {number}", name) for number, line in enumerate(lines[1:], start=2) if line]
    return _make_run(rows, "", name)


def _csv_row(line: list[str], place: str, name: str) -> Row:
    if len(line) != len(CSV_HEADER):
        raise refusal(name, place, f"it has {len(line)} columns, and the first row {len(CSV_HEADER)}")
    cells = dict(zip(CSV_HEADER, line, strict=True))
    values = {}
    for column in COLUMNS:
        names = (f"{column}_mean", f"{column}_std")
        if any(cells[each] for each in names):
            middle, spread = (_number(cells[each], f"{place}, {each}", name) for each in names)
            values[column] = (middle, spread)
    return _row(place, cells["model"], cells["test_name"], values, name)


def read_markdown(text: str, name: str) -> BenchRun:
    """Returns the run of a Markdown table, whatever text is around it; raises WrongUse with the line of what is wrong."""
    numbered = enumerate(text.splitlines(), start=1)
    lines = [(f"line {number}", _cells(line)) for number, line in numbered if line.startswith("|")]
    columns = MARKDOWN_HEADERS.get(tuple(lines[0][1]))
    if columns is None:
        raise refusal(name, lines[0][0], "these are not the columns of llama-benchy's table")
    rows = [_markdown_row(place, cells, columns, name) for place, cells in lines[2:]]
    version = FOOTER_VERSION.search(text)
    return _make_run(rows, version[1] if version else "", name)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _markdown_row(place: str, cells: list[str], columns: tuple[str, ...], name: str) -> Row:
    if len(cells) != len(columns) + 2:
        raise refusal(name, place, f"it has {len(cells)} columns, and the table {len(columns) + 2}")
    model, test, *texts = cells
    values = {}
    for column, text in zip(columns, texts, strict=True):
        if text:
            middle, _, spread = text.partition("±")
            values[column] = (_number(middle, f"{place}, {column}", name), _number(spread, f"{place}, {column}", name))
    if columns == ONE_AT_A_TIME:  # then a request's rate is the total, and the table leaves it out
        values |= {f"{column}_req": values[column] for column in ("t_s", "peak_ts") if column in values}
    return _row(place, model, test, values, name)


def _number(text: str, place: str, name: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise refusal(name, place, f"{text.strip()!r} is no number of tokens or milliseconds")
    return number


def _row(place: str, model: str, test: str, values: Values, name: str) -> Row:
    found = TEST.fullmatch(test)
    if found is None:
        raise refusal(name, place, f"{test!r} is no test like pp2048, tg32 @ d4096 or ctx_pp @ d4096 (c8)")
    is_prefill = found["pp"] is not None or found["phase"] == "pp"
    odd = sorted(set(values) - set(PREFILL if is_prefill else DECODE))
    if odd:
        raise refusal(name, place, f"{test} has no {', '.join(odd)} in llama-benchy's tables")
    size = found["pp"] or found["tg"]
    return Row(
        place, model, test, bool(found["context"]), is_prefill, int(size) if size else None,
        int(found["depth"] or 0), int(found["load"] or 1), values,
    )  # fmt: skip


def _make_run(rows: list[Row], version: str, name: str) -> BenchRun:
    if not rows:
        raise refusal(name, "it has no rows", "the table is empty")
    if len({row.model for row in rows}) > 1:
        raise refusal(name, rows[0].place, "its rows are of several models", "make a file of each model's rows")
    is_cached = any(row.is_context for row in rows)
    cells = [_make_result(halves, is_cached, name) for halves in _halves(rows)]
    return make_run(rows[0].model, cells, version, None, (), "means and deviations without values")


def _halves(rows: list[Row]) -> Iterator[list[Row]]:
    """Gives each cell's rows: its prefill and the decoding after it, or one of them."""
    waiting: Row | None = None
    for row in rows:
        if not row.is_prefill and waiting is not None and _is_same_cell(waiting, row):
            yield [waiting, row]
            waiting = None
            continue
        if waiting is not None:
            yield [waiting]
        waiting = row if row.is_prefill else None
        if not row.is_prefill:
            yield [row]
    if waiting is not None:
        yield [waiting]


def _is_same_cell(one: Row, other: Row) -> bool:
    return (one.is_context, one.depth, one.concurrency) == (other.is_context, other.depth, other.concurrency)


def _make_result(halves: list[Row], is_cached: bool, name: str) -> CellResult:
    first, last = halves[0], halves[-1]
    if not first.is_prefill and not first.is_context:
        raise refusal(name, first.place, f"no row before it tells the prompt of {first.test}")
    new = None if last.is_prefill else last.size
    cell = make_cell(first.size or 0, new, first.depth, first.concurrency, first.is_context, is_cached and first.depth > 0)
    return make_result(cell, [figure for half in halves for figure in _figures(half)])


def _figures(row: Row) -> Iterator[BenchFigure]:
    metrics = PREFILL if row.is_prefill else DECODE
    for column, (middle, spread) in row.values.items():
        if metrics[column] in metric_names(row.concurrency):
            kind = METRICS[metrics[column]]
            yield number_of(f"mean_{kind.figure}", kind.per, middle / kind.unit)
            yield number_of(f"std_{kind.figure}", kind.per, spread / kind.unit)
