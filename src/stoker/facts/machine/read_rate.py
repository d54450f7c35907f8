"""Measures how fast a disk reads a file from its beginning, which is what an engine does with its weights.

It is bounded in bytes and in time. The page cache is gone around (O_DIRECT), since it would answer instead of the disk, and
so are holes in a file, which no disk has to read: a sparse one gave 41.7 GiB/s.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import sys
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
STAT_BLOCK_BYTES = 512  # what st_blocks counts, whatever the file system's own blocks are


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
    """Returns the file in these folders and below that has most on the disk; None without one that is worth reading."""
    largest, size = None, LARGE_BYTES - 1
    entries = (entry for folder in folders for entry in _walk(folder))
    for _, entry in zip(range(MOST_ENTRIES), entries, strict=False):
        with contextlib.suppress(OSError):
            stored_bytes = _stored_bytes(entry.stat())
            if stored_bytes > size:
                largest, size = Path(entry.path), stored_bytes
    return largest


def _stored_bytes(status: os.stat_result) -> int:
    """Returns how much of a file lies on the disk: less than its length where it has holes, or is compressed."""
    return min(status.st_size, status.st_blocks * STAT_BLOCK_BYTES)


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


def measure_file(file: Path, limit_bytes: int = LIMIT_BYTES, limit_s: float = LIMIT_S, from_bytes: int = 0) -> ReadRate:
    """Returns how fast the file was read from a place on until one of the limits was reached; raises OSError."""
    descriptor, direct = _open(file)
    try:
        if not direct:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        read_bytes, seconds = _read(descriptor, limit_bytes, limit_s, place=from_bytes - from_bytes % BLOCK_BYTES)
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


def _read(
    descriptor: int, limit_bytes: int, limit_s: float, block_bytes: int = BLOCK_BYTES, place: int = 0
) -> tuple[int, float]:
    done = 0
    began = time.perf_counter()
    with mmap.mmap(-1, block_bytes) as block:  # O_DIRECT wants memory that begins on a page
        while done < limit_bytes and time.perf_counter() - began < limit_s:
            start, end = _next_data(descriptor, place)
            if end <= start:
                break
            read_bytes = os.preadv(descriptor, [memoryview(block)[: _whole_pages(min(end - start, block_bytes))]], start)
            done += read_bytes
            place = start + read_bytes
            if read_bytes < min(end - start, block_bytes):
                break
    return done, time.perf_counter() - began


def _next_data(descriptor: int, place: int) -> tuple[int, int]:
    """Returns from where to where the file has data after a place, in whole pages; equal where there is no more."""
    try:
        start = os.lseek(descriptor, place, os.SEEK_DATA)
        end = os.lseek(descriptor, start, os.SEEK_HOLE)
    except OSError as problem:
        if problem.errno == errno.ENXIO:  # nothing but a hole follows
            return place, place
        return place, sys.maxsize  # a file system that tells of no holes: read on until it ends
    return start - start % mmap.PAGESIZE if start > place else place, end


def _whole_pages(count: int) -> int:
    return -(-count // mmap.PAGESIZE) * mmap.PAGESIZE


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
