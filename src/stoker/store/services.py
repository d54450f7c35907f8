"""The services as they were last known, one row each; the daemon reads them when it starts.

WAL with synchronous=NORMAL: a killed daemon loses nothing, a power cut at most the last change, never the file.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import msgspec

from stoker.errors import StokerError
from stoker.records import SavedService
from stoker.store.migrations import MIGRATIONS

BUSY_LIMIT_S = 5.0


class ServiceStore:
    """Reads and writes the saved services; every call is one transaction."""

    def __init__(self, file: Path) -> None:
        self.file = file
        try:
            self._database = sqlite3.connect(file, timeout=BUSY_LIMIT_S, isolation_level=None)
            self._prepare()
        except sqlite3.Error as problem:
            raise _broken(file, problem) from problem

    def _prepare(self) -> None:
        try:
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._migrate()
        except (sqlite3.Error, StokerError):
            self._database.close()
            raise

    def _migrate(self) -> None:
        done = self._database.execute("PRAGMA user_version").fetchone()[0]
        if done > len(MIGRATIONS):
            raise StokerError(
                f"{self.file} was written by a newer Stoker",
                why=f"its schema is {done}, this version knows {len(MIGRATIONS)}",
                next_step="upgrade Stoker, or use another state folder (STOKER_STATE)",
            )
        for number, step in enumerate(MIGRATIONS[done:], start=done + 1):
            self._database.executescript(f"BEGIN; {step}; PRAGMA user_version = {number}; COMMIT;")

    def read_all(self) -> list[SavedService]:
        """Returns every saved service, by name."""
        try:
            rows = self._database.execute("SELECT saved FROM services ORDER BY name").fetchall()
            return [msgspec.json.decode(row[0], type=SavedService) for row in rows]
        except (sqlite3.Error, msgspec.MsgspecError) as problem:
            raise _broken(self.file, problem) from problem

    def write(self, saved: SavedService) -> None:
        """Writes one service; raises StokerError where the disk does not take it."""
        row = (saved.plan.service, msgspec.json.encode(saved).decode())
        try:
            self._database.execute("INSERT OR REPLACE INTO services VALUES (?, ?)", row)
        except sqlite3.Error as problem:
            raise _broken(self.file, problem) from problem

    def delete(self, name: str) -> None:
        """Forgets one service; raises StokerError where the disk does not take it."""
        try:
            self._database.execute("DELETE FROM services WHERE name = ?", (name,))
        except sqlite3.Error as problem:
            raise _broken(self.file, problem) from problem

    def close(self) -> None:
        """Closes the file."""
        self._database.close()


NEXT_STEPS = {
    "full": "free some disk space",
    "readonly": "make the file and its folder writable",
    "unable to open": "make the folder writable, or use another state folder (STOKER_STATE)",
    "locked": "close the other program that uses it",
}


def _broken(file: Path, problem: Exception) -> StokerError:
    step = next((step for sign, step in NEXT_STEPS.items() if sign in str(problem)), None)
    return StokerError(
        f"{file} cannot be used",
        why=str(problem),
        next_step=step or "move it away to begin anew; no model is lost by that",
    )
