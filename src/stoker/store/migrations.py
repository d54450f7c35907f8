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
    """
    CREATE TABLE keys (
        name TEXT PRIMARY KEY,
        digest TEXT NOT NULL UNIQUE,
        created REAL NOT NULL,
        expires REAL,
        revoked REAL,
        saved TEXT NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE verifications (
        id INTEGER PRIMARY KEY,
        service TEXT NOT NULL,
        plan_id TEXT NOT NULL,
        occasion TEXT NOT NULL,
        begun REAL NOT NULL,
        passed INTEGER NOT NULL,
        saved TEXT NOT NULL
    ) STRICT;
    CREATE INDEX verifications_of_service ON verifications (service, id)
    """,
)

# In a file of its own: it grows with every request, and a state must never wait for it or be lost with it.
USAGE: tuple[str, ...] = (
    """
    CREATE TABLE usage (
        id INTEGER PRIMARY KEY,
        at REAL NOT NULL,
        key TEXT NOT NULL,
        path TEXT NOT NULL,
        request_id TEXT NOT NULL,
        duration_s REAL NOT NULL,
        status INTEGER,
        service TEXT,
        model TEXT,
        prompt_tokens INTEGER,
        completion_tokens INTEGER,
        cached_tokens INTEGER,
        ttft_s REAL
    ) STRICT;
    CREATE INDEX usage_by_time ON usage (at);
    CREATE TABLE last_used (key TEXT PRIMARY KEY, at REAL NOT NULL) STRICT
    """,
)

# In a file of its own: a run may bring megabytes, and may be carried to another machine. A cell is a row, so that it is kept
# as soon as it was measured; its requests are apart, so that those of old runs can be forgotten without their figures.
BENCH: tuple[str, ...] = (
    """
    CREATE TABLE runs (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        began_at REAL,
        tool TEXT NOT NULL,
        model TEXT NOT NULL,
        service TEXT,
        engine TEXT,
        engine_version TEXT,
        image_digest TEXT,
        model_revision TEXT,
        plan_id TEXT,
        machine TEXT,
        is_whole INTEGER NOT NULL,
        asked TEXT NOT NULL,
        saved TEXT NOT NULL
    ) STRICT;
    CREATE TABLE cells (
        run INTEGER NOT NULL REFERENCES runs (id),
        place INTEGER NOT NULL,
        saved BLOB NOT NULL,
        requests BLOB,
        PRIMARY KEY (run, place)
    ) STRICT
    """,
)

# In a file of its own: it may be thrown away, and nothing else waits for it. Points of a level are as long as `step_s`.
WATCH: tuple[str, ...] = (
    """
    CREATE TABLE points (
        service TEXT NOT NULL,
        step_s INTEGER NOT NULL,
        at INTEGER NOT NULL,
        saved BLOB NOT NULL,
        PRIMARY KEY (service, step_s, at)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE alerts (
        alert TEXT NOT NULL,
        about TEXT NOT NULL,
        since REAL NOT NULL,
        is_over INTEGER NOT NULL,
        saved BLOB NOT NULL,
        PRIMARY KEY (since, alert, about)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE acts (id INTEGER PRIMARY KEY, at REAL NOT NULL, about TEXT NOT NULL, saved BLOB NOT NULL) STRICT;
    CREATE TABLE learnt (name TEXT PRIMARY KEY, saved BLOB NOT NULL) STRICT;
    CREATE TABLE silences (alert TEXT NOT NULL, about TEXT NOT NULL, until REAL NOT NULL, PRIMARY KEY (alert, about)) STRICT
    """,
)
