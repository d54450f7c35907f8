"""The one seam to the machine: reading its files, running its programs, asking its clock.

Readers of the machine take a `Box`; tests hand them a recorded one, a folder that holds the files of another machine.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Protocol, cast

RUN_LIMIT_S = 10.0


class Box(Protocol):
    """What a reader of the machine may ask."""

    def read(self, path: str) -> str | None:
        """Returns the file's text, or None where the machine has no such file or keeps it to itself."""

    def names(self, folder: str) -> list[str]:
        """Returns the sorted names of what is in a folder; none where there is no such folder or it may not be read."""

    def find_program(self, name: str) -> str | None:
        """Returns the full path of a program on the search path, or None."""

    def run(self, argv: Sequence[str], limit_s: float = RUN_LIMIT_S) -> str | None:
        """Returns what the program printed, or None where it is missing, fails or outlasts `limit_s`."""

    def uname(self) -> tuple[str, str, str]:
        """Returns host name, kernel release and processor architecture."""

    def cpu_count(self) -> int:
        """Returns how many processors this process may use."""

    def disk_bytes(self, path: str) -> tuple[int, int] | None:
        """Returns (total, free) of the file system that holds the path, or None where that is unknown."""


class LocalBox:
    """The machine this process runs on."""

    def read(self, path: str) -> str | None:
        """Reads a file, usually one of the kernel's."""
        try:
            return Path(path).read_text(errors="replace")
        except OSError:
            return None

    def names(self, folder: str) -> list[str]:
        """Lists a folder."""
        try:
            return sorted(entry.name for entry in Path(folder).iterdir())
        except OSError:
            return []

    def find_program(self, name: str) -> str | None:
        """Searches the folders of PATH."""
        return shutil.which(name)

    def run(self, argv: Sequence[str], limit_s: float = RUN_LIMIT_S) -> str | None:
        """Runs a program to its end, without a shell and without input."""
        try:
            done = subprocess.run(
                list(argv), capture_output=True, stdin=subprocess.DEVNULL, timeout=limit_s, check=True,
                env={**os.environ, "LC_ALL": "C"},  # the words that we look for are English
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError):
            return None
        return (done.stdout + done.stderr).decode(errors="replace")

    @contextmanager
    def open_output(self, argv: Sequence[str]) -> Iterator[IO[bytes]]:
        """Opens what a program prints, however much that is; it is ended where the reader stops before it does."""
        with subprocess.Popen(
            list(argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**os.environ, "LC_ALL": "C"},
        ) as running:  # fmt: skip
            try:
                yield cast(IO[bytes], running.stdout)
            finally:
                running.kill()

    def try_run(self, argv: Sequence[str], path: str, limit_s: float = RUN_LIMIT_S) -> tuple[int, str] | None:
        """Returns a program's exit code and all it printed; None where `path` has no such program or it takes too long."""
        program = shutil.which(argv[0], path=path)
        if program is None:
            return None
        try:
            done = subprocess.run(
                [program, *argv[1:]], capture_output=True, stdin=subprocess.DEVNULL, timeout=limit_s, check=False,
                env={**os.environ, "LC_ALL": "C"},
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError):
            return None
        return done.returncode, (done.stdout + done.stderr).decode(errors="replace")

    def uname(self) -> tuple[str, str, str]:
        """Asks the kernel."""
        return platform.node(), platform.release(), platform.machine()

    def cpu_count(self) -> int:
        """Counts the processors this process may be scheduled on."""
        return len(os.sched_getaffinity(0))

    def disk_bytes(self, path: str) -> tuple[int, int] | None:
        """Asks the file system; free is what an ordinary user may still write."""
        try:
            found = os.statvfs(path)
        except OSError:
            return None
        return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize


class RecordedBox:
    """Another machine, recorded as a folder: files under `root/`, outputs as `run/WORDS.txt`, `uname`, maybe `disks`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, path: str) -> str | None:
        """Reads the recorded file."""
        try:
            return (self.folder / "root" / path.lstrip("/")).read_text()
        except OSError:
            return None

    def names(self, folder: str) -> list[str]:
        """Lists the recorded folder."""
        try:
            return sorted(entry.name for entry in (self.folder / "root" / folder.lstrip("/")).iterdir())
        except OSError:
            return []

    def find_program(self, name: str) -> str | None:
        """Searches the recorded folders where programs usually are."""
        places = (f"/{folder}/{name}" for folder in ("usr/local/bin", "usr/bin"))
        return next((place for place in places if (self.folder / "root" / place[1:]).exists()), None)

    def run(self, argv: Sequence[str], limit_s: float = RUN_LIMIT_S) -> str | None:
        """Returns the recorded output of these words."""
        try:
            return (self.folder / "run" / ("_".join(argv).replace("/", "-") + ".txt")).read_text()
        except OSError:
            return None

    def uname(self) -> tuple[str, str, str]:
        """Returns the recorded names."""
        host, kernel, arch = (self.folder / "uname").read_text().split()
        return host, kernel, arch

    def cpu_count(self) -> int:
        """Counts the processors in the recorded /proc/cpuinfo."""
        return (self.read("/proc/cpuinfo") or "").count("processor\t")

    def disk_bytes(self, path: str) -> tuple[int, int] | None:
        """Returns the numbers after this path in the file `disks`, written as the kernel writes mount points."""
        lines = (self.folder / "disks").read_text().splitlines() if (self.folder / "disks").exists() else []
        known = {words[0].replace("\\040", " "): words[1:] for line in lines if (words := line.split())}
        return (int(known[path][0]), int(known[path][1])) if path in known else None


def clock_s() -> float:
    """Returns seconds since the epoch."""
    return time.time()


def start_detached(argv: Sequence[str], log: Path) -> Callable[[], int | None]:
    """Starts a program that outlives this one, in a session of its own; raises OSError.

    Returns a function that tells its exit code, or None as long as it runs.
    """
    with log.open("ab") as out:
        started = subprocess.Popen(
            list(argv), stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, cwd="/"
        )
    return started.poll


def is_running(pid: int) -> bool:
    """Tells whether a process lives; one that ended and was not waited for yet does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")
