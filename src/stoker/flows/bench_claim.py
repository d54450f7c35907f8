"""Which kept run is being measured: its process holds a lock as long as it lives, however it ends.

One byte of one file stands for each run, so that nothing has to be cleaned up afterwards.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress

from stoker.config import Paths


class Claim:
    """Says that this process measures a run."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._descriptor: int | None = None

    def take(self, number: int) -> bool:
        """Claims a run; returns False where another process measures it.

        A disk that holds no locks keeps nobody from measuring.
        """
        with suppress(OSError):
            self._descriptor = os.open(self._paths.bench_lock, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
            except (BlockingIOError, PermissionError):  # POSIX lets a kernel say either
                self.release()
                return False
        return True

    def release(self) -> None:
        """Lets go of it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
