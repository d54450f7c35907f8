"""How the last starts of each service went; the oldest are forgotten."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import msgspec

from stoker.records import Start, Timeline
from stoker.store.database import broken, open_database, read_rows

KEPT = 20


class TimelineStore:
    """Keeps starts; every call is one transaction."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._database = open_database(file)

    def write(self, start: Start) -> None:
        """Writes one start and forgets all but the service's last ones; raises StokerError where the disk is full."""
        line = start.timeline
        row = (start.service, start.plan_id, line.engine, line.version, line.begun_at, line.total_s, _encode(line))
        try:
            with self._database:
                self._database.execute("BEGIN IMMEDIATE")
                self._database.execute(INSERT, row)
                self._database.execute(FORGET, (start.service, start.service, KEPT))
        except sqlite3.Error as problem:
            raise broken(self.file, problem) from problem

    def forget(self, service: str) -> None:
        """Forgets all starts of a service."""
        try:
            self._database.execute("DELETE FROM timelines WHERE service = ?", (service,))
        except sqlite3.Error as problem:
            raise broken(self.file, problem) from problem

    def close(self) -> None:
        """Closes the file."""
        self._database.close()


INSERT = "INSERT INTO timelines (service, plan_id, engine, version, begun_at, total_s, saved) VALUES (?, ?, ?, ?, ?, ?, ?)"
FORGET = """
DELETE FROM timelines WHERE service = ? AND id NOT IN
    (SELECT id FROM timelines WHERE service = ? ORDER BY id DESC LIMIT ?)
"""
READ = "SELECT plan_id, saved FROM timelines WHERE service = ? ORDER BY id DESC LIMIT ?"
SERVICES = "SELECT service FROM timelines GROUP BY service ORDER BY max(id) DESC"


def _encode(timeline: Timeline) -> str:
    return msgspec.json.encode(timeline).decode()


def read_starts(file: Path, service: str, most: int = KEPT) -> list[Start]:
    """Returns a service's starts, the last first, without a daemon and without changing the file; raises StokerError."""
    rows = read_rows(file, READ, (service, most))
    try:
        return [Start(service, plan_id, msgspec.json.decode(saved, type=Timeline)) for plan_id, saved in rows]
    except msgspec.MsgspecError as problem:
        raise broken(file, problem) from problem


def read_services(file: Path) -> list[str]:
    """Returns the names of the services of which starts are kept, the one that started last first."""
    return [name for (name,) in read_rows(file, SERVICES)]
