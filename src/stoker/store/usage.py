"""Usage in SQLite: written in batches, bounded by age and number, and summed up beside whoever writes."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import msgspec

from stoker.records import UsageBy, UsageLine, UsageRecord
from stoker.store.database import broken, open_database, read_rows
from stoker.store.migrations import USAGE

DAY_S = 86400
FIELDS = UsageRecord.__struct_fields__
INSERT = f"INSERT INTO usage ({', '.join(FIELDS)}) VALUES ({', '.join('?' * len(FIELDS))})"  # noqa: S608 - our own names
USED = """
INSERT INTO last_used VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET at = max(at, excluded.at)
"""
FORGET_OLD = "DELETE FROM usage WHERE at < ?"
FORGET_MANY = "DELETE FROM usage WHERE id <= (SELECT max(id) FROM usage) - ?"
NAMES: dict[UsageBy, str] = {
    "key": "key",
    "model": "coalesce(model, '')",
    "day": "strftime('%Y-%m-%d', at, 'unixepoch', 'localtime')",
}
# A sum over nothing known is NULL in SQL, which is what unknown should be.
SUM = """
SELECT {name} AS name, count(*), count(*) FILTER (WHERE status IS NULL OR status >= 400), count(completion_tokens),
    sum(prompt_tokens), sum(completion_tokens), sum(cached_tokens), avg(ttft_s), avg(duration_s)
FROM usage WHERE at >= ? GROUP BY name ORDER BY name
"""


class UsageStore:
    """Writes usage; belongs to the thread that made it. `keep_days` and `keep_rows` bound it, whichever is less."""

    def __init__(self, file: Path, keep_days: int, keep_rows: int) -> None:
        self.file = file
        self._keep_s = keep_days * DAY_S
        self._keep_rows = keep_rows
        self._database = open_database(file, USAGE)

    def write(self, records: Sequence[UsageRecord], now: float) -> None:
        """Writes some records and forgets old ones, in one transaction; raises StokerError where the disk is full."""
        try:
            with self._database:
                self._database.execute("BEGIN IMMEDIATE")
                self._database.executemany(INSERT, map(msgspec.structs.astuple, records))
                self._database.executemany(USED, {one.key: one.at for one in sorted(records, key=_at)}.items())
                self._database.execute(FORGET_OLD, (now - self._keep_s,))
                self._database.execute(FORGET_MANY, (self._keep_rows,))
        except sqlite3.Error as problem:
            raise broken(self.file, problem) from problem

    def close(self) -> None:
        """Closes the file."""
        self._database.close()


def _at(record: UsageRecord) -> float:
    return record.at


def read_usage(file: Path, by: UsageBy, since: float | None) -> tuple[UsageLine, ...]:
    """Returns usage summed up by key, model or local day, without changing the file; raises StokerError."""
    rows = read_rows(file, SUM.format(name=NAMES[by]), (since or 0.0,))
    return tuple(msgspec.convert(row, UsageLine) for row in map(_as_fields, rows))


def _as_fields(row: tuple[object, ...]) -> dict[str, object]:
    return dict(zip(UsageLine.__struct_fields__, row, strict=True))


def read_last_used(file: Path) -> dict[str, float]:
    """Returns when each key was last used, in seconds since the epoch; raises StokerError."""
    return {str(key): float(str(at)) for key, at in read_rows(file, "SELECT key, at FROM last_used")}
