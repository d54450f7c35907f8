"""Keeps who is logged in at the dashboard, so that a new daemon does not ask every open page for the key again."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import msgspec

from stoker.records.dashboard import SavedSession

logger = logging.getLogger("stoker.daemon")


def read_sessions(file: Path) -> list[SavedSession]:
    """Returns the sessions of a former daemon; none where the file is lost or broken, and everybody logs in again."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=list[SavedSession])
    except FileNotFoundError:
        return []
    except (OSError, msgspec.MsgspecError) as problem:
        logger.warning("who was logged in at the dashboard cannot be read (%s): log in again", problem)
        return []


def write_sessions(file: Path, sessions: list[SavedSession]) -> None:
    """Keeps the sessions, for this user alone; a full disk costs a login after the next restart."""
    fresh = file.with_suffix(".new")
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            out.write(msgspec.json.encode(sessions))
        fresh.replace(file)
    except OSError as problem:
        logger.warning("who is logged in at the dashboard is not kept for a next daemon: %s", problem)
