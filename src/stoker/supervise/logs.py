"""Follows what an engine prints: the file it writes is read into a bounded ring, and kept from growing without end.

The engine appends to the file itself. To rotate it, its content is copied to what becomes FILE.1 and the file is cut to
nothing; the engine's next line starts it anew. Only what is written in the microseconds between the end of the copy and the
cut is lost.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections import deque
from collections.abc import Callable
from pathlib import Path

RING_LINES = 2000
LINE_LIMIT_BYTES = 4096
# Between two launches in one file: what a former one said explains nothing of this one.
LAUNCH = re.compile(r"^stoker: launch \d+ of \S+ begins$")
# Around what Stoker's own probes ask: some of it an engine has to refuse, and what it says of that is no fault.
PROBES_BEGIN = "stoker: its own probes begin to ask"
PROBES_END = "stoker: its own probes have asked, and the engine lives"
READ_BYTES = 256 * 1024
ROOM_BYTES = 1024**2  # what the engine may write meanwhile, and the file system for itself
# Colours, cursor moves and titles are for the terminal that the engine believes it has.
ESCAPES = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[@-Z\\^_])")


class EngineLog:
    """The last lines of one engine's output. `problem` says what is wrong with the disk, if anything is.

    `on_lines` is called with new whole lines, in order, as they are read.
    """

    def __init__(self, file: Path, limit_bytes: int) -> None:
        self.file = file
        self.on_lines: Callable[[list[str]], None] | None = None
        self.limit_bytes = limit_bytes
        self.ring: deque[str] = deque(maxlen=RING_LINES)
        self.problem: str | None = None
        self._position = 0
        self._partial = b""

    def begin(self) -> None:
        """Starts at the present end of the file, so that the ring holds this launch alone."""
        self.ring.clear()
        self.problem = None
        self._partial = b""
        self._position = self._size()

    def mark_launch(self, service: str, launch: int) -> None:
        """Says in the file that what comes now is another launch's; without it the file only tells less."""
        write_mark(self.file, f"stoker: launch {launch} of {service} begins")

    def _size(self) -> int:
        try:
            return self.file.stat().st_size
        except OSError:
            return 0

    def poll(self) -> None:
        """Reads what is new, and rotates a file that has grown too long."""
        try:
            self._read_new()
            if self._position > self.limit_bytes:
                self._rotate()
            self.problem = self._read_disk_problem()
        except FileNotFoundError:
            self._position = 0
        except OSError as problem:
            self.problem = f"the engine's log cannot be kept: {problem.strerror or problem}"

    def _read_new(self) -> None:
        if self._size() < self._position:  # somebody else cut it
            self._position = 0
            self._add(b"\n" if self._partial else b"")
        with self.file.open("rb") as source:
            source.seek(self._position)
            while block := source.read(READ_BYTES):
                self._position += len(block)
                self._add(block)

    def _add(self, block: bytes) -> None:
        *lines, partial = (self._partial + block).split(b"\n")
        fresh = [visible(line) for line in lines]
        self.ring.extend(fresh)
        self._partial = partial[partial.rfind(b"\r", 0, len(partial) - 1) + 1 :][:LINE_LIMIT_BYTES]
        if fresh and self.on_lines is not None:
            self.on_lines(fresh)

    def _rotate(self) -> None:
        """Copies and cuts the file; the former copy goes once there is a new one, which is not tried without room for it."""
        disk = os.statvfs(self.file)
        if disk.f_bavail * disk.f_frsize < self._size() + ROOM_BYTES:
            return
        former, fresh = (self.file.with_name(self.file.name + end) for end in (".1", ".new"))
        try:
            with self.file.open("rb") as source, fresh.open("wb") as copy:
                while block := source.read(READ_BYTES):
                    copy.write(block)
                    if source.tell() > self._position:
                        self._add(block[self._position - source.tell() :])
                        self._position = source.tell()
                copy.flush()  # fails before the cut where the disk is full
                fresh.replace(former)
                os.truncate(self.file, 0)
        finally:
            fresh.unlink(missing_ok=True)
        self._position = 0

    def _read_disk_problem(self) -> str | None:
        found = os.statvfs(self.file)
        if found.f_bavail == 0:
            return f"the disk that holds {self.file.parent} is full: the engine's output is being lost"
        return None

    def tail(self, count: int) -> list[str]:
        """Returns the last lines, the unfinished one too."""
        self.poll()
        lines = [*self.ring, *([visible(self._partial)] if self._partial else [])]
        return lines[-count:] if count > 0 else []


def write_mark(file: Path, mark: str) -> None:
    """Appends a line of Stoker's own to an engine's log; a disk that does not take it is no reason to stop."""
    with contextlib.suppress(OSError), file.open("ab") as out:
        out.write(f"{mark}\n".encode())


def mark_probes(file: Path, mark: str) -> None:
    """Says in an engine's log, where it has one here, that Stoker's own probes begin to ask it, or have asked."""
    if file.exists():
        write_mark(file, mark)


def visible(line: bytes) -> str:
    """Returns what a terminal would show of a line: the last state of a progress bar, without escape sequences."""
    last = ESCAPES.sub(b"", line.rstrip(b"\r").rpartition(b"\r")[2])
    return last[:LINE_LIMIT_BYTES].decode(errors="replace")
