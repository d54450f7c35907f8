"""Copies what a unit prints from systemd's journal into the service's log, where this user may read it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import time
from pathlib import Path

from stoker.launch.sudoers import SYSTEM_PATH

READ_BYTES = 64 * 1024


class JournalCopy:
    """A `journalctl --follow` whose lines are appended to a file; it ends with the daemon, whose pipe it writes to."""

    def __init__(self, unit: str, is_own: bool, log: Path, since_s: float) -> None:
        self._log = log
        self._popen: subprocess.Popen[bytes] | None = None
        journalctl = shutil.which("journalctl", path=SYSTEM_PATH)
        if journalctl is None:
            return
        field = "_SYSTEMD_USER_UNIT" if is_own else "_SYSTEMD_UNIT"
        words = ("--follow", "--output=cat", "--quiet", f"--since=@{int(since_s)}", f"{field}={unit}")
        self._popen = subprocess.Popen(
            (journalctl, *words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._descriptor = self._popen.stdout.fileno() if self._popen.stdout else -1
        asyncio.get_running_loop().add_reader(self._descriptor, self._copy)

    def _copy(self) -> None:
        block = os.read(self._descriptor, READ_BYTES)
        if not block:
            self.close()
            return
        with contextlib.suppress(OSError), self._log.open("ab") as log:  # a full disk is told of by the log's reader
            log.write(block)

    def close(self) -> None:
        """Ends it."""
        popen, self._popen = self._popen, None
        if popen is None:
            return
        asyncio.get_running_loop().remove_reader(self._descriptor)
        popen.kill()
        with popen:  # closes the pipe and reaps it
            pass


def say_where(unit: str, is_own: bool, log: Path) -> None:
    """Writes into a service's log where its unit's output is, for the case that this user may not read it."""
    option = "--user-unit" if is_own else "-u"
    append_note(log, f"{unit}: its output is in the journal: journalctl {option} {unit} --since=@{int(time.time())}")


def append_note(log: Path, text: str) -> None:
    """Appends a line of Stoker's own to a service's log; where the disk is full, nothing depends on it."""
    with contextlib.suppress(OSError):
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as out:
            out.write(f"stoker: {text}\n".encode())
