"""A SQLite file of ours: opened, brought up to date, and told of where it is broken.

WAL with synchronous=NORMAL: a killed daemon loses nothing, a power cut at most the last change, never the file.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from stoker.errors import StokerError
from stoker.store.migrations import MIGRATIONS

WITHOUT_TABLE = "no such table"  # it is just being made, or an older Stoker kept none
BUSY_LIMIT_S = 5.0


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
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        _migrate(database, file, schema)
    except (sqlite3.Error, StokerError):
        database.close()
        raise


def _migrate(database: sqlite3.Connection, file: Path, schema: tuple[str, ...]) -> None:
    done = database.execute("PRAGMA user_version").fetchone()[0]
    if done > len(schema):
        raise StokerError(
            f"{file} was written by a newer Stoker",
            why=f"its schema is {done}, this version knows {len(schema)}",
            next_step="upgrade Stoker, or use another state folder (STOKER_STATE)",
        )
    for number, step in enumerate(schema[done:], start=done + 1):
        database.executescript(f"BEGIN; {step}; PRAGMA user_version = {number}; COMMIT;")


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
