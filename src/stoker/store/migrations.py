"""The schema as a list of steps: each is applied once, in order, and never edited afterwards."""

from __future__ import annotations

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE services (
        name TEXT PRIMARY KEY,
        saved TEXT NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE timelines (
        id INTEGER PRIMARY KEY,
        service TEXT NOT NULL,
        plan_id TEXT NOT NULL,
        engine TEXT NOT NULL,
        version TEXT,
        begun_at REAL,
        total_s REAL,
        saved TEXT NOT NULL
    ) STRICT;
    CREATE INDEX timelines_of_service ON timelines (service, id)
    """,
    """
    CREATE TABLE switch (
        only INTEGER PRIMARY KEY CHECK (only = 1),
        saved TEXT NOT NULL
    ) STRICT
    """,
)
