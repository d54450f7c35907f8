"""Keeps the fix that is tried, so that a next daemon writes it down where this one ends before the service is READY."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import msgspec

from stoker.records.fixing import SavedFix

logger = logging.getLogger("stoker.daemon")


def read_kept_fix(file: Path) -> SavedFix | None:
    """Returns the fix during which a daemon ended; None where there is none, or it cannot be read."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=SavedFix)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as problem:
        logger.warning("the fix that was tried cannot be read (%s): nobody writes it down", problem)
        return None


def keep_fix(file: Path, saved: SavedFix) -> None:
    """Keeps a fix for this user alone; on a full disk it is written down by this daemon, or by none."""
    fresh = file.with_suffix(".new")
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            out.write(msgspec.json.encode(saved))
        fresh.replace(file)
    except OSError as problem:
        logger.warning("the fix of %s is not kept for a next daemon: %s", saved.tried.service, problem)


def forget_fix(file: Path) -> None:
    """Forgets the fix that is over."""
    try:
        file.unlink(missing_ok=True)
    except OSError as problem:
        logger.warning("the fix that is over is still kept: %s", problem)
