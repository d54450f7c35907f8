"""A table that keeps what happened last to each service: what is older than its last rows is forgotten."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import ClassVar

from stoker.store.database import broken, open_database

KEPT = 20


class LastRows:
    """The writer of such a table; every call is one transaction, and raises StokerError where the disk does not take it.

    `INSERT` takes a row, `FORGET_OLD` the service twice and how many rows stay, `FORGET` the service.
    """

    INSERT: ClassVar[str]
    FORGET_OLD: ClassVar[str]
    FORGET: ClassVar[str]

    def __init__(self, file: Path) -> None:
        self.file = file
        self._database = open_database(file)

    def add(self, service: str, row: tuple[object, ...]) -> None:
        """Writes one row and forgets all but the service's last ones."""
        try:
            with self._database:
                self._database.execute("BEGIN IMMEDIATE")
                self._database.execute(self.INSERT, row)
                self._database.execute(self.FORGET_OLD, (service, service, KEPT))
        except sqlite3.Error as problem:
            raise broken(self.file, problem) from problem

    def forget(self, service: str) -> None:
        """Forgets all rows of a service."""
        try:
            self._database.execute(self.FORGET, (service,))
        except sqlite3.Error as problem:
            raise broken(self.file, problem) from problem

    def close(self) -> None:
        """Closes the file."""
        self._database.close()
