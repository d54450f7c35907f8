"""The named keys, by their digests. A key of 256 random bits needs neither salt nor stretching: there is nothing to guess.

A call opens the file for itself, since keys change seldom, and not in the thread that answers requests.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from stoker.errors import Refused, WrongUse
from stoker.records import NamedKey
from stoker.store.database import broken, open_database, open_to_read

WITHOUT_TABLE = "no such table"  # written by a Stoker that had no named keys yet
# A name whose key is no longer good is free again.
ADD = """
INSERT INTO keys (name, digest, created, expires, revoked, saved) VALUES (?, ?, ?, ?, NULL, ?)
ON CONFLICT (name) DO UPDATE SET digest = excluded.digest, created = excluded.created, expires = excluded.expires,
    revoked = NULL, saved = excluded.saved
WHERE keys.revoked IS NOT NULL OR keys.expires <= excluded.created
"""
REVOKE = "UPDATE keys SET revoked = ? WHERE name = ? AND revoked IS NULL"


def read_keys(file: Path) -> list[NamedKey]:
    """Returns all keys by name, the revoked ones too, without changing the file; raises StokerError."""
    if not file.exists():
        return []
    try:
        with closing(open_to_read(file)) as database:
            rows = database.execute("SELECT saved, revoked FROM keys ORDER BY name").fetchall()
        return [msgspec.structs.replace(msgspec.json.decode(row[0], type=NamedKey), revoked=row[1]) for row in rows]
    except (sqlite3.Error, msgspec.MsgspecError) as problem:
        if WITHOUT_TABLE in str(problem):
            return []
        raise broken(file, problem) from problem


def add_key(file: Path, key: NamedKey) -> None:
    """Adds a key; raises Refused where a key of that name is good still, StokerError where the disk does not take it."""
    row = (key.name, key.digest, key.created, key.expires, msgspec.json.encode(key).decode())
    with _open(file) as database:
        added = database.execute(ADD, row).rowcount
    if not added:
        raise Refused(
            f"there is a key called `{key.name}` already",
            why="a key is shown once, so it cannot be shown again",
            next_step=f"choose another name, or end that key first: `stoker keys revoke {key.name}`",
        )


def revoke_key(file: Path, name: str, at: float) -> None:
    """Ends a key; one that was ended before stays as it was. Raises WrongUse where there is none, StokerError otherwise."""
    with _open(file) as database:
        database.execute(REVOKE, (at, name))
        names = [row[0] for row in database.execute("SELECT name FROM keys ORDER BY name")]
    if name not in names:
        raise WrongUse(
            f"there is no key called `{name}`",
            next_step=f"keys here: {', '.join(names)}" if names else "`stoker keys add NAME` makes one",
        )


@contextmanager
def _open(file: Path) -> Iterator[sqlite3.Connection]:
    with closing(open_database(file)) as database:
        try:
            yield database
        except sqlite3.Error as problem:
            raise broken(file, problem) from problem
