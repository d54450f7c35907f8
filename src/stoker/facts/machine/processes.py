"""Reads what a process is called."""

from __future__ import annotations

import psutil


def read_process_name(pid: int | None) -> str | None:
    """Returns a process's name; None where it ended, where it is not ours to see, or where no number is known."""
    if pid is None:
        return None
    try:
        return psutil.Process(pid).name()
    except psutil.Error:
        return None
