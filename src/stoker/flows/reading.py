"""Reads files that people name on the command line, and no pipe, device or folder that happens to be called so."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from stoker.errors import WrongUse

MOST_BYTES = 4 * 1024**2


def read_text(path: Path, what: str = "a launch that somebody wrote", most_bytes: int = MOST_BYTES) -> str:
    """Returns a file's text; raises WrongUse where it is none, or where it is no file that can be read to its end."""
    held = read_start(path, most_bytes + 1)
    if len(held) > most_bytes or b"\0" in held:
        raise WrongUse(f"{path} is not {what}", why=f"it is larger than {most_bytes // 1024**2} MiB, or no text")
    return held.decode(errors="replace")


def read_start(path: Path, most_bytes: int) -> bytes:
    """Returns the first bytes of a file; raises WrongUse where it is none, or cannot be read."""
    try:
        # Not blocking: to open a pipe would otherwise wait for somebody who writes into it, for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as opened:
            _check_ordinary(path, os.fstat(descriptor).st_mode)
            return opened.read(most_bytes)
    except (OSError, ValueError) as problem:  # ValueError: a NUL in the path
        why = getattr(problem, "strerror", None) or str(problem)
        raise WrongUse(
            f"{path} cannot be read", why=why, next_step="name a file that is here, and yours to read"
        ) from problem


def _check_ordinary(path: Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise WrongUse(f"{path} cannot be read", why="Is a directory", next_step="name a file in it")
    if not stat.S_ISREG(mode):
        raise WrongUse(
            f"{path} is a pipe or a device, and no file",
            why="it may never end, or never begin",
            next_step="write what comes from it to a file first, and name that",
        )
