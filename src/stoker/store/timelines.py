"""How the last starts of each service went; the oldest are forgotten."""

from __future__ import annotations

from pathlib import Path

import msgspec

from stoker.records import Start, Timeline
from stoker.store.database import broken, read_rows
from stoker.store.last_rows import KEPT, LastRows


class TimelineStore(LastRows):
    """Keeps starts."""

    INSERT = """
    INSERT INTO timelines (service, plan_id, engine, version, begun_at, total_s, saved) VALUES (?, ?, ?, ?, ?, ?, ?)
    """
    FORGET_OLD = """
    DELETE FROM timelines WHERE service = ? AND id NOT IN
        (SELECT id FROM timelines WHERE service = ? ORDER BY id DESC LIMIT ?)
    """
    FORGET = "DELETE FROM timelines WHERE service = ?"

    def write(self, start: Start) -> None:
        """Writes one start and forgets all but the service's last ones; raises StokerError where the disk is full."""
        line = start.timeline
        saved = msgspec.json.encode(line).decode()
        self.add(
            start.service,
            (start.service, start.plan_id, line.engine, line.version, line.begun_at, line.total_s, saved),
        )


READ = "SELECT plan_id, saved FROM timelines WHERE service = ? ORDER BY id DESC LIMIT ?"
RECENT = """
SELECT service, plan_id, saved FROM
    (SELECT *, row_number() OVER (PARTITION BY service ORDER BY id DESC) AS back FROM timelines)
WHERE back <= ? ORDER BY id
"""
SERVICES = "SELECT service FROM timelines GROUP BY service ORDER BY max(id) DESC"


def read_starts(file: Path, service: str, most: int = KEPT) -> list[Start]:
    """Returns a service's starts, the last first, without a daemon and without changing the file; raises StokerError."""
    rows = read_rows(file, READ, (service, most))
    try:
        return [Start(service, plan_id, msgspec.json.decode(saved, type=Timeline)) for plan_id, saved in rows]
    except msgspec.MsgspecError as problem:
        raise broken(file, problem) from problem


def read_recent(file: Path, most: int) -> list[Start]:
    """Returns the last starts of all services, the oldest first: one question for however many there are."""
    rows = read_rows(file, RECENT, (most,))
    try:
        return [Start(service, plan_id, msgspec.json.decode(saved, type=Timeline)) for service, plan_id, saved in rows]
    except msgspec.MsgspecError as problem:
        raise broken(file, problem) from problem


def read_services(file: Path) -> list[str]:
    """Returns the names of the services of which starts are kept, the one that started last first."""
    return [name for (name,) in read_rows(file, SERVICES)]
