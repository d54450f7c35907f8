"""The schema as a list of steps: each is applied once, in order, and never edited afterwards."""

from __future__ import annotations

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE services (
        name TEXT PRIMARY KEY,
        saved TEXT NOT NULL
    ) STRICT
    """,
)
