"""What watching saw, in SQLite: fine for days, coarse for a year, and never larger than that; alerts, acts, what was learnt.

The file is opened for each writing: an idle daemon does not keep its pages in memory.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeVar

import msgspec

from stoker.records.watching import Acted, Alert, Silence, WatchPoint
from stoker.store.database import broken, open_database, read_rows
from stoker.store.migrations import WATCH

# A point's length, and how many are kept: two days of minutes, a month of ten minutes, thirteen months of two hours. About
# 100 bytes each: at most 1.3 MB a service.
LEVELS = ((60, 2880), (600, 4320), (7200, 4752))
MOST_ALERTS, MOST_ACTS = 2000, 2000
MACHINE = ""  # the machine's own points
Learnt = Mapping[str, Sequence[Sequence[float]]]
T = TypeVar("T")

READ_POINT = "SELECT saved FROM points WHERE service = ? AND step_s = ? AND at = ?"
WRITE_POINT = "INSERT OR REPLACE INTO points VALUES (?, ?, ?, ?)"
FORGET_POINTS = """
DELETE FROM points WHERE service = ? AND step_s = ? AND at <= (
    SELECT at FROM points WHERE service = ? AND step_s = ? ORDER BY at DESC LIMIT 1 OFFSET ?)
"""
WRITE_ALERT = "INSERT OR REPLACE INTO alerts VALUES (?, ?, ?, ?, ?)"
FORGET_ALERTS = """
DELETE FROM alerts WHERE is_over AND since <= (SELECT since FROM alerts ORDER BY since DESC LIMIT 1 OFFSET ?)
"""
WRITE_ACT = "INSERT INTO acts (at, about, saved) VALUES (?, ?, ?)"
FORGET_ACTS = "DELETE FROM acts WHERE id <= (SELECT max(id) FROM acts) - ?"
WRITE_LEARNT = "INSERT OR REPLACE INTO learnt VALUES (?, ?)"
WRITE_SILENCE = "INSERT OR REPLACE INTO silences VALUES (?, ?, ?)"


class Batch(NamedTuple):
    """What is written together: points by service and when they began, alerts that changed, acts, and what was learnt."""

    points: Mapping[tuple[str, int], WatchPoint]
    alerts: Sequence[Alert] = ()
    acts: Sequence[Acted] = ()
    learnt: Learnt = MappingProxyType({})
    silences: Sequence[Silence] = ()


def write_batch(file: Path, batch: Batch) -> None:
    """Writes a batch in one transaction and forgets what is older than the levels allow; raises StokerError."""
    try:
        with closing(open_database(file, WATCH)) as database, database:
            database.execute("BEGIN IMMEDIATE")
            for (service, at), point in batch.points.items():
                _write_point(database, service, at, point)
            database.executemany(WRITE_ALERT, map(_alert_row, batch.alerts))
            database.executemany(WRITE_ACT, ((one.at, one.about, _encode(one)) for one in batch.acts))
            database.executemany(WRITE_LEARNT, ((name, _encode(rows)) for name, rows in batch.learnt.items()))
            database.executemany(WRITE_SILENCE, ((one.id, one.about, one.until) for one in batch.silences))
            if batch.learnt:  # as seldom as that is enough
                _forget_old(database, {service for service, _ in batch.points})
    except (sqlite3.Error, msgspec.MsgspecError) as problem:
        raise broken(file, problem) from problem


def _write_point(database: sqlite3.Connection, service: str, at: int, point: WatchPoint) -> None:
    """Adds a point to the stretch of each level that it lies in."""
    for step_s, _ in LEVELS:
        begins = at // step_s * step_s
        there = database.execute(READ_POINT, (service, step_s, begins)).fetchone()
        joined = point if there is None else msgspec.msgpack.decode(there[0], type=WatchPoint).joined(point)
        database.execute(WRITE_POINT, (service, step_s, begins, _encode(joined)))


def _forget_old(database: sqlite3.Connection, services: set[str]) -> None:
    for service in services:
        for step_s, most in LEVELS:
            database.execute(FORGET_POINTS, (service, step_s, service, step_s, most))
    database.execute(FORGET_ALERTS, (MOST_ALERTS,))
    database.execute(FORGET_ACTS, (MOST_ACTS,))


def _alert_row(alert: Alert) -> tuple[object, ...]:
    return alert.id, alert.about, alert.since, alert.state == "resolved", _encode(alert)


def read_points(
    file: Path, service: str, since: float, span_s: float, most: int
) -> tuple[int, list[tuple[int, WatchPoint]]]:
    """Returns a service's points of so long since then, at the finest level that makes at most so many, and its length."""
    step_s = next((step_s for step_s, kept in LEVELS if span_s <= step_s * min(kept, most)), LEVELS[-1][0])
    question = "SELECT at, saved FROM points WHERE service = ? AND step_s = ? AND at >= ? AND at <= ? ORDER BY at"
    rows = read_rows(file, question, (service, step_s, int(since) // step_s * step_s, int(since + span_s)))
    return step_s, [(at, _decode(file, saved, WatchPoint)) for at, saved in rows]


def read_alerts_since(file: Path, since: float, about: str | None = None) -> tuple[Alert, ...]:
    """Returns the alerts that fired since then or still do, the last first."""
    rows = read_rows(file, "SELECT saved FROM alerts WHERE since >= ? OR NOT is_over ORDER BY since DESC", (since,))
    found = (_decode(file, saved, Alert) for (saved,) in rows)
    return tuple(one for one in found if about is None or one.about == about)


def read_acts_since(file: Path, since: float, about: str | None = None) -> tuple[Acted, ...]:
    """Returns what was done since then, the last first."""
    rows = read_rows(file, "SELECT saved FROM acts WHERE at >= ? ORDER BY id DESC", (since,))
    found = (_decode(file, saved, Acted) for (saved,) in rows)
    return tuple(one for one in found if about is None or one.about == about)


def read_learnt(file: Path) -> dict[str, list[list[float]]]:
    """Returns what was learnt, by service and method."""
    rows = read_rows(file, "SELECT name, saved FROM learnt")
    return {name: _decode(file, saved, list[list[float]]) for name, saved in rows}


def read_silences(file: Path) -> tuple[Silence, ...]:
    """Returns all silences that were ever made; most are over."""
    return tuple(Silence(*row) for row in read_rows(file, "SELECT alert, about, until FROM silences"))


def _encode(value: object) -> bytes:
    return msgspec.msgpack.encode(value)


def _decode(file: Path, saved: bytes, kind: type[T]) -> T:
    try:
        return msgspec.msgpack.decode(saved, type=kind)
    except msgspec.MsgspecError as problem:
        raise broken(file, problem) from problem
