"""What others published of their machines, and what we measured of a GPU, as runs: tables of reports, each with its source.

`data/runs.toml` says of whom and what each run is, `data/cells.csv` has its figures. They are means, medians (of ours), or
single measurements; nobody gave the values that they are of, so they compare by size alone.
"""

from __future__ import annotations

import csv
import tomllib
from collections import defaultdict
from functools import cache
from pathlib import Path

import msgspec

from stoker.bench.formats.figures import number_of
from stoker.records import (
    BenchCell,
    BenchFigure,
    BenchLoad,
    BenchRun,
    BenchSubject,
    CellResult,
    FigurePer,
    Record,
    SpeculationSeen,
)

FOLDER = Path(__file__).parent / "data"
PER: dict[str, FigurePer] = {
    "mean_ttft_s": "request", "mean_first_chunk_prefill_tps": "request", "mean_total_prefill_tps": "repeat",
    "mean_request_decode_tps": "request", "mean_total_decode_tps": "repeat", "ttft_s": "request",
    "request_decode_tps": "request",
}  # fmt: skip


class Published(Record, frozen=True):
    """One `[[run]]`: whose it is, and of what."""

    name: str
    title: str
    source: str
    tool: str
    model: str
    engine: str
    machine: str
    note: str
    tool_version: str = ""
    engine_version: str | None = None
    flags: tuple[str, ...] | None = None
    accept_by_position: tuple[float, ...] | None = None


@cache
def load_published() -> dict[str, BenchRun]:
    """Returns all that is published here, by name, sorted."""
    with (FOLDER / "runs.toml").open("rb") as file:
        heads = msgspec.convert(tomllib.load(file)["run"], tuple[Published, ...])
    cells = _read_cells()
    return {head.name: _run(head, cells[head.name]) for head in sorted(heads, key=lambda head: head.name)}


def _read_cells() -> defaultdict[str, list[dict[str, str]]]:
    cells: defaultdict[str, list[dict[str, str]]] = defaultdict(list)
    with (FOLDER / "cells.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            cells[row["run"]].append(row)
    return cells


def _run(head: Published, rows: list[dict[str, str]]) -> BenchRun:
    subject = BenchSubject(
        None, head.model, engine=head.engine, engine_version=head.engine_version, flags=head.flags, machine=head.machine
    )
    cells = tuple(_result(head, row) for row in rows)
    note = f"{head.note} From: {head.title}, {head.source}"
    return BenchRun(None, head.tool, head.tool_version, None, None, None, True, subject, cells, (), note)


def _result(head: Published, row: dict[str, str]) -> CellResult:
    new = int(row["new_tokens"]) if row["new_tokens"] else None
    load = BenchLoad(concurrency=int(row["concurrency"]))
    cell = BenchCell(int(row["prompt_tokens"]), new, int(row["depth_tokens"]), load, row["content"])
    figures: list[BenchFigure] = [number_of(name, per, float(row[name])) for name, per in PER.items() if row[name]]
    return CellResult(
        cell, tuple(figures), (f"{head.tool}'s count",), None, None,
        speculation=_speculation(head, row["accept_rate"], row["accept_length"]),
    )  # fmt: skip


def _speculation(head: Published, rate: str, length: str) -> SpeculationSeen | None:
    if not (rate or length):
        return None
    accept_rate, accept_length = (float(one) if one else None for one in (rate, length))
    return SpeculationSeen("the report", None, None, None, accept_rate, accept_length, head.accept_by_position)
