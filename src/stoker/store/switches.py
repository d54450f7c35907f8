"""The switch that is not over, so that a new daemon goes on with it; one row, or none."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import msgspec

from stoker.records import SavedSwitch
from stoker.store.database import broken, open_database


class SwitchStore:
    """Keeps one switch; every call is one transaction."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._database = open_database(file)

    def read(self) -> SavedSwitch | None:
        """Returns the switch during which a daemon ended, or None."""
        try:
            row = self._database.execute("SELECT saved FROM switch").fetchone()
            return msgspec.json.decode(row[0], type=SavedSwitch) if row else None
        except (sqlite3.Error, msgspec.MsgspecError) as problem:
            raise broken(self.file, problem) from problem

    def write(self, saved: SavedSwitch | None) -> None:
        """Keeps a switch, or forgets the one that is over; raises StokerError where the disk does not take it."""
        try:
            if saved is None:
                self._database.execute("DELETE FROM switch")
            else:
                text = msgspec.json.encode(saved).decode()
                self._database.execute("INSERT OR REPLACE INTO switch VALUES (1, ?)", (text,))
        except sqlite3.Error as problem:
            raise broken(self.file, problem) from problem

    def close(self) -> None:
        """Closes the file."""
        self._database.close()
