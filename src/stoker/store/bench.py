"""Runs of benchmarks in SQLite: each cell is there as soon as it is measured, and the oldest requests are forgotten.

A cell's figures stay for good with their values; its requests, which are a hundred times as large, within a budget.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from stoker.errors import WrongUse
from stoker.records import BenchCell, BenchRepeat, BenchRun, BenchRunLine, CellResult, KeptRun, RequestSeen
from stoker.store.database import broken, open_database, read_rows
from stoker.store.migrations import BENCH

Decoded = TypeVar("Decoded")
MOST_REQUESTS_BYTES = 1024**3  # compressed; about a hundred large runs
EXACT_DIGITS = 6  # of seconds: a microsecond is less than what any clock tells of a network
COLUMNS = ("began_at", "tool", "model", "service", "engine", "engine_version", "image_digest", "model_revision", "plan_id",
           "machine", "is_whole", "asked", "saved")  # fmt: skip
ADD = f"INSERT INTO runs ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608 - our own names
CHANGE = f"UPDATE runs SET {', '.join(f'{name} = ?' for name in COLUMNS)} WHERE id = ?"  # noqa: S608 - our own names
ADD_CELL = "INSERT OR REPLACE INTO cells VALUES (?, ?, ?, ?)"
FORGET = """
UPDATE cells SET requests = NULL WHERE requests IS NOT NULL AND rowid IN (
    SELECT rowid FROM (
        SELECT rowid, run, sum(length(requests)) OVER (ORDER BY run DESC, place DESC) AS total FROM cells
        WHERE requests IS NOT NULL
    ) WHERE total > ? AND run <> ?
)
"""
LINES = """
SELECT runs.id, saved, asked, (SELECT count(*) FROM cells WHERE cells.run = runs.id) FROM runs ORDER BY runs.id DESC LIMIT ?
"""
UNFINISHED = "SELECT id FROM runs WHERE is_whole = 0 AND json_array_length(asked) > 0 ORDER BY id DESC"
RUN = "SELECT saved, asked FROM runs WHERE id = ?"
CELLS = "SELECT saved, iif(?, requests, NULL) FROM cells WHERE run = ? ORDER BY place"


class BenchStore:
    """Keeps runs; every call is one transaction. Raises StokerError where the disk does not take what it is given."""

    def __init__(self, file: Path, most_requests_bytes: int = MOST_REQUESTS_BYTES) -> None:
        self.file = file
        self._most_requests_bytes = most_requests_bytes
        self._database = open_database(file, BENCH)

    def begin(self, run: BenchRun, asked: tuple[BenchCell, ...]) -> int:
        """Keeps a run that begins, with the cells that are asked of it, and returns its number."""
        with self._change() as database:
            return self._add(database, run, asked)

    def write_cell(self, run_id: int, place: int, result: CellResult) -> None:
        """Keeps a cell at its place among those that were asked for, instead of what was measured of it before."""
        with self._change() as database:
            database.execute(ADD_CELL, (run_id, place, *_packed(result)))

    def finish(self, run_id: int, run: BenchRun, asked: tuple[BenchCell, ...]) -> None:
        """Keeps what is known of a run at its end; its cells are there already."""
        with self._change() as database:
            database.execute(CHANGE, (*_row(run, asked), run_id))
            database.execute(FORGET, (self._most_requests_bytes, run_id))

    def write(self, run: BenchRun) -> int:
        """Keeps a run that is over, all of it or nothing, and returns its number."""
        with self._change() as database:
            run_id = self._add(database, run, tuple(result.cell for result in run.cells))
            for place, result in enumerate(run.cells):
                database.execute(ADD_CELL, (run_id, place, *_packed(result)))
            database.execute(FORGET, (self._most_requests_bytes, run_id))
            return run_id

    def close(self) -> None:
        """Closes the file."""
        self._database.close()

    @staticmethod
    def _add(database: sqlite3.Connection, run: BenchRun, asked: tuple[BenchCell, ...]) -> int:
        run_id = database.execute(ADD, _row(run, asked)).lastrowid
        return int(run_id or 0)

    @contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        try:
            with self._database:
                self._database.execute("BEGIN IMMEDIATE")
                yield self._database
        except sqlite3.Error as problem:
            raise broken(self.file, problem) from problem


def read_bench_lines(file: Path, most: int = -1) -> list[BenchRunLine]:
    """Returns the kept runs, the last first, without changing the file; raises StokerError."""
    return [_line(file, *row) for row in read_rows(file, LINES, (most,))]


def read_bench_run(file: Path, run_id: int, *, with_requests: bool = True) -> KeptRun:
    """Returns a run with its cells; raises WrongUse where there is none of that number, StokerError otherwise."""
    rows = read_rows(file, RUN, (run_id,))
    if not rows:
        raise WrongUse(f"there is no benchmark run {run_id}", next_step="`stoker bench list` shows those that are kept")
    cells = tuple(_unpacked(file, *row) for row in read_rows(file, CELLS, (with_requests, run_id)))
    run = msgspec.structs.replace(_decoded(file, rows[0][0], BenchRun), id=run_id, cells=cells)
    return KeptRun(run, _decoded(file, rows[0][1], tuple[BenchCell, ...]))


def read_unfinished(file: Path) -> list[int]:
    """Returns the numbers of the runs that were not measured to their end, the last first."""
    return [row[0] for row in read_rows(file, UNFINISHED)]


def _row(run: BenchRun, asked: tuple[BenchCell, ...]) -> tuple[object, ...]:
    of = run.subject
    saved = msgspec.structs.replace(run, id=None, cells=())
    return (run.began_at, run.tool, of.model, of.service, of.engine, of.engine_version, of.image_digest, of.model_revision,
            of.plan_id, of.machine, run.is_whole, _encoded(asked), _encoded(saved))  # fmt: skip


def _line(file: Path, run_id: int, saved: str, asked: str, cells: int) -> BenchRunLine:
    run = _decoded(file, saved, BenchRun)
    of = run.subject
    wanted = len(_decoded(file, asked, tuple[BenchCell, ...]))
    return BenchRunLine(run_id, None, run.began_at, run.tool, of.model, of.service, of.engine, of.engine_version, of.machine,
                        cells, wanted, run.is_whole, run.note)  # fmt: skip


def _encoded(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _decoded(file: Path, text: str | bytes, kind: type[Decoded]) -> Decoded:
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.MsgspecError as problem:
        raise broken(file, problem) from problem


def _packed(result: CellResult) -> tuple[bytes, bytes | None]:
    requests = zlib.compress(msgspec.json.encode(tuple(map(_rounded, result.repeats)))) if result.repeats else None
    return zlib.compress(msgspec.json.encode(msgspec.structs.replace(result, repeats=()))), requests


def _rounded(repeat: BenchRepeat) -> BenchRepeat:
    return msgspec.structs.replace(repeat, requests=tuple(map(_rounded_request, repeat.requests)))


def _rounded_request(request: RequestSeen) -> RequestSeen:
    writes = tuple(msgspec.structs.replace(one, at_s=round(one.at_s, EXACT_DIGITS)) for one in request.writes)
    return msgspec.structs.replace(request, writes=writes)


def _unpacked(file: Path, saved: bytes, requests: bytes | None) -> CellResult:
    result = _decoded(file, _inflated(file, saved), CellResult)
    if requests is None:
        return result
    return msgspec.structs.replace(result, repeats=_decoded(file, _inflated(file, requests), tuple[BenchRepeat, ...]))


def _inflated(file: Path, packed: Any) -> bytes:
    try:
        return zlib.decompress(packed)
    except (zlib.error, TypeError) as problem:
        raise broken(file, problem) from problem
