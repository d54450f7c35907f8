"""The services as they were last known, one row each; the daemon reads them when it starts."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec

from stoker.records import SavedService
from stoker.store.database import broken, open_database, open_to_read


class ServiceStore:
    """Reads and writes the saved services; every call is one transaction."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._database = open_database(file)

    def read_all(self) -> list[SavedService]:
        """Returns every saved service, by name."""
        return _read(self.file, self._database)

    def write(self, saved: SavedService) -> None:
        """Writes one service; raises StokerError where the disk does not take it."""
        row = (saved.plan.service, msgspec.json.encode(saved).decode())
        try:
            self._database.execute("INSERT OR REPLACE INTO services VALUES (?, ?)", row)
        except sqlite3.Error as problem:
            raise broken(self.file, problem) from problem

    def delete(self, name: str) -> None:
        """Forgets one service; raises StokerError where the disk does not take it."""
        try:
            self._database.execute("DELETE FROM services WHERE name = ?", (name,))
        except sqlite3.Error as problem:
            raise broken(self.file, problem) from problem

    def close(self) -> None:
        """Closes the file."""
        self._database.close()


def read_saved(file: Path) -> list[SavedService]:
    """Returns every saved service without changing the file; empty where there is none yet. Raises StokerError."""
    if not file.exists():
        return []
    with closing(open_to_read(file)) as database:
        return _read(file, database)


def _read(file: Path, database: sqlite3.Connection) -> list[SavedService]:
    try:
        rows = database.execute("SELECT saved FROM services ORDER BY name").fetchall()
        return [msgspec.json.decode(row[0], type=SavedService) for row in rows]
    except (sqlite3.Error, msgspec.MsgspecError) as problem:
        raise broken(file, problem) from problem
