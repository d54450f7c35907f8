"""Runs the command that is told of alerts: words, never a shell, and not for longer than its limit."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence

from stoker.errors import StokerError


def run_notice(argv: Sequence[str], text: bytes, limit_s: float) -> None:
    """Gives the text to a command's standard input; raises StokerError where it fails or outlasts its limit.

    It has a session of its own, all of which ends with it. What it prints is not kept.
    """
    try:
        popen = subprocess.Popen(
            list(argv), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True, cwd="/",
        )  # fmt: skip
    except OSError as problem:
        raise StokerError(f"`{argv[0]}` could not be started", why=problem.strerror or str(problem)) from problem
    try:
        popen.communicate(text, limit_s)
    except subprocess.TimeoutExpired as problem:
        os.killpg(popen.pid, signal.SIGKILL)
        popen.communicate()
        raise StokerError(f"`{argv[0]}` did not end within {limit_s:g} s (notice_limit_s)") from problem
    if popen.returncode:
        raise StokerError(f"`{argv[0]}` ended with exit code {popen.returncode}")
