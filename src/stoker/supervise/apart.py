"""Runs a program beside the daemon for what it prints: its work takes neither the loop's time nor the daemon's memory."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from collections.abc import Sequence


async def read_apart(argv: Sequence[str], limit_s: float) -> bytes | None:
    """Returns what a program printed; None where it cannot be started, fails or outlasts its limit, and then is killed."""
    try:
        process = await asyncio.create_subprocess_exec(
            *argv, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    except OSError:
        return None
    try:
        async with asyncio.timeout(limit_s):
            printed, _ = await process.communicate()
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return printed if process.returncode == 0 else None
