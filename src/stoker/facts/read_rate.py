"""Measures how fast a disk reads a file from its beginning, which is what an engine does with its weights.

It is bounded in bytes and in time. The page cache is gone around (O_DIRECT), since it would answer instead of the disk.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from stoker.errors import StokerError
from stoker.records import GIB, MIB, ReadRate

LIMIT_BYTES = GIB
LIMIT_S = 2.0
BLOCK_BYTES = 16 * MIB
OWN_FILE_BYTES = 256 * MIB  # where no file of that size is there to be read
LARGE_BYTES = 64 * MIB  # a smaller file is read before the clock has ticked often enough
MOST_ENTRIES = 20_000


def measure_folder(folders: Iterable[Path], free_bytes: int) -> ReadRate:
    """Returns the rate of the largest file in the folders, or of one written there and removed; raises StokerError."""
    there = list(folders)
    if largest := find_largest(there):
        with contextlib.suppress(OSError):  # one that we may not read, or that was removed just now
            return measure_file(largest)
    for folder in there:
        if free_bytes > 4 * OWN_FILE_BYTES and folder.is_dir() and os.access(folder, os.W_OK):
            return _measure_own(folder)
    raise StokerError("there is no large file to read, and none can be written")


def find_largest(folders: Iterable[Path]) -> Path | None:
    """Returns the largest file in these folders and below; None without one that is worth reading."""
    largest, size = None, LARGE_BYTES - 1
    entries = (entry for folder in folders for entry in _walk(folder))
    for _, entry in zip(range(MOST_ENTRIES), entries, strict=False):
        with contextlib.suppress(OSError):
            if entry.stat().st_size > size:
                largest, size = Path(entry.path), entry.stat().st_size
    return largest


def _walk(folder: Path) -> Iterable[os.DirEntry[str]]:
    waiting = [str(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                found = list(entries)
        except OSError:
            continue
        # A hub's cache names its files by links; the files themselves lie beside them.
        waiting += [entry.path for entry in found if entry.is_dir(follow_symlinks=False)]
        yield from (entry for entry in found if entry.is_file(follow_symlinks=False))


def measure_file(file: Path, limit_bytes: int = LIMIT_BYTES, limit_s: float = LIMIT_S) -> ReadRate:
    """Returns how fast the file was read until one of the limits was reached; raises OSError."""
    descriptor, direct = _open(file)
    try:
        if not direct:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        read_bytes, seconds = _read(descriptor, limit_bytes, limit_s)
    finally:
        os.close(descriptor)
    return ReadRate(int(read_bytes / max(seconds, 1e-9)), read_bytes, round(seconds, 3), direct, str(file))


def _open(file: Path) -> tuple[int, bool]:
    """Opens around the page cache, or through it where the file system refuses: some do when opening, some when reading."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_DIRECT)
    except OSError:
        return os.open(file, os.O_RDONLY), False
    try:
        _read(descriptor, mmap.PAGESIZE, LIMIT_S, mmap.PAGESIZE)
    except OSError:
        os.close(descriptor)
        return os.open(file, os.O_RDONLY), False
    return descriptor, True


def _read(descriptor: int, limit_bytes: int, limit_s: float, block_bytes: int = BLOCK_BYTES) -> tuple[int, float]:
    done = 0
    began = time.perf_counter()
    with mmap.mmap(-1, block_bytes) as block:  # O_DIRECT wants memory that begins on a page
        while done < limit_bytes and time.perf_counter() - began < limit_s:
            read_bytes = os.preadv(descriptor, [block], done)
            done += read_bytes
            if read_bytes < block_bytes:
                break
    return done, time.perf_counter() - began


def _measure_own(folder: Path) -> ReadRate:
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".stoker-read-rate-") as file:
            _fill(file.fileno())
            return measure_file(Path(file.name))
    except OSError as problem:
        raise StokerError(f"a file to read could not be written in {folder}", why=str(problem)) from problem


def _fill(descriptor: int) -> None:
    block = os.urandom(4 * MIB)  # zeros would be compressed, or not be stored at all
    began = time.perf_counter()
    while os.fstat(descriptor).st_size < OWN_FILE_BYTES and time.perf_counter() - began < LIMIT_S:
        os.write(descriptor, block)
    os.fsync(descriptor)
