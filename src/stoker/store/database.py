"""A SQLite file of ours: opened, brought up to date, and told of where it is broken.

WAL with synchronous=NORMAL: a killed daemon loses nothing, a power cut at most the last change, never the file.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from stoker.errors import StokerError
from stoker.store.migrations import MIGRATIONS

WITHOUT_TABLE = "no such table"  # it is just being made, or an older Stoker kept none
BUSY_LIMIT_S, BUSY_PAUSE_S = 5.0, 0.02


def open_database(file: Path, schema: tuple[str, ...] = MIGRATIONS) -> sqlite3.Connection:
    """Opens the file to read and write, with the newest schema; raises StokerError where it cannot be used."""
    try:
        database = sqlite3.connect(file, timeout=BUSY_LIMIT_S, isolation_level=None)
        _prepare(database, file, schema)
    except sqlite3.Error as problem:
        raise broken(file, problem) from problem
    return database


def open_to_read(file: Path) -> sqlite3.Connection:
    """Opens the file as it is, beside whoever writes to it; nothing of it is changed. Raises StokerError."""
    try:
        return sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", timeout=BUSY_LIMIT_S, isolation_level=None, uri=True)
    except sqlite3.Error as problem:
        raise broken(file, problem) from problem


def read_rows(file: Path, question: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
    """Returns what a file answers, nothing where it or the table is not there yet; raises StokerError."""
    if not file.exists():
        return []
    try:
        with closing(open_to_read(file)) as database:
            return database.execute(question, values).fetchall()
    except sqlite3.Error as problem:
        if WITHOUT_TABLE in str(problem):
            return []
        raise broken(file, problem) from problem


def _prepare(database: sqlite3.Connection, file: Path, schema: tuple[str, ...]) -> None:
    try:
        _use_wal(database)
        database.execute("PRAGMA synchronous = NORMAL")
        _migrate(database, file, schema)
    except (sqlite3.Error, StokerError):
        database.close()
        raise


def _use_wal(database: sqlite3.Connection) -> None:
    """Waits for another first user, for whom SQLite's own limit does not wait here."""
    end = time.monotonic() + BUSY_LIMIT_S
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as problem:
            if "locked" not in str(problem) or time.monotonic() > end:
                raise
            time.sleep(BUSY_PAUSE_S)
        else:
            return


def _migrate(database: sqlite3.Connection, file: Path, schema: tuple[str, ...]) -> None:
    if _read_version(database) == len(schema):
        return
    database.execute("BEGIN IMMEDIATE")  # and look again: another one may have done it meanwhile
    done = _read_version(database)
    if done > len(schema):
        raise StokerError(
            f"{file} was written by a newer Stoker",
            why=f"its schema is {done}, this version knows {len(schema)}",
            next_step="upgrade Stoker, or use another state folder (STOKER_STATE)",
        )
    for step in schema[done:]:
        for statement in _statements(step):
            database.execute(statement)
    database.execute(f"PRAGMA user_version = {len(schema)}")
    database.execute("COMMIT")


def _read_version(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])


def _statements(script: str) -> Iterator[str]:
    """Gives a script's statements one by one: as a whole sqlite3 runs it in a transaction of its own."""
    statement = ""
    for part in f"{script};".split(";")[:-1]:
        statement += f"{part};"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


NEXT_STEPS = {
    "full": "free some disk space",
    "readonly": "make the file and its folder writable",
    "unable to open": "make the folder writable, or use another state folder (STOKER_STATE)",
    "locked": "close the other program that uses it",
}


def broken(file: Path, problem: Exception) -> StokerError:
    """Returns what to tell of a file that cannot be used."""
    step = next((step for sign, step in NEXT_STEPS.items() if sign in str(problem)), None)
    return StokerError(
        f"{file} cannot be used",
        why=str(problem),
        next_step=step or "move it away to begin anew; no model is lost by that",
    )
