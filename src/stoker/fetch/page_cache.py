"""What the kernel holds of one file in its page cache: asks, fills and empties it, a range at a time.

The calls go to libc through ctypes, which lets other threads run meanwhile.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from functools import cache
from pathlib import Path

PAGE_BYTES = mmap.PAGESIZE
# The kernel reads no more for one call than the larger of the device's read_ahead_kb (128 by default) and its largest
# request, and says nothing of the rest: 16 MiB asked for at once left half of it unread at read_ahead_kb 8192.
PIECE_BYTES = 128 * 1024
MAP_FAILED = ctypes.c_void_p(-1).value


class NotTold(Exception):
    """Why the page cache of a file cannot be followed."""


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
    libc.readahead.argtypes = [ctypes.c_int, ctypes.c_long, ctypes.c_size_t]
    return libc


class CachedFile:
    """One file, open and mapped, but never touched: what is in the page cache is there for others."""

    def __init__(self, path: Path) -> None:
        """Opens the file; raises OSError, or NotTold where the kernel would not tell what it holds of it."""
        self.path = path
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._opened = os.fstat(self._descriptor)
            self.size = self._opened.st_size
            self._check_is_told()
            self._address = self._map()
            self._one_page = ctypes.create_string_buffer(1)
        except BaseException:
            os.close(self._descriptor)
            raise

    def _check_is_told(self) -> None:
        # Since Linux 5.2 mincore calls everything resident for those who neither own the file nor may write it.
        if os.geteuid() not in (0, self._opened.st_uid) and not os.access(self.path, os.W_OK):
            raise NotTold("it belongs to another user, so the kernel does not tell what is cached of it")

    def _map(self) -> int:
        if self.size == 0:
            raise NotTold("it is empty")
        address = _libc().mmap(None, self.size, mmap.PROT_READ, mmap.MAP_SHARED, self._descriptor, 0)
        if address in (None, MAP_FAILED):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(self.path))
        return int(address)

    def changed(self) -> str | None:
        """Tells what became of the file since it was opened; None where it is the same."""
        try:
            now = self.path.stat()
        except OSError as problem:
            return f"it went away: {problem.strerror}"
        if (now.st_dev, now.st_ino) != (self._opened.st_dev, self._opened.st_ino):
            return "it was replaced by another file"
        return f"it was {self.size:,} bytes long and is {now.st_size:,} now" if now.st_size != self.size else None

    def resident_bytes(self, start: int, end: int) -> int:
        """Returns how much of a range is in the page cache, in whole pages; `start` begins a page."""
        pages = -(-(end - start) // PAGE_BYTES)
        told = ctypes.create_string_buffer(pages)
        if _libc().mincore(self._address + start, end - start, told) != 0:
            return 0
        return sum(page & 1 for page in told.raw) * PAGE_BYTES

    def has_page(self, place: int) -> bool:
        """Tells whether the page that begins at a place is in the page cache: a microsecond."""
        return _libc().mincore(self._address + place, 1, self._one_page) == 0 and self._one_page.raw[0] & 1 == 1

    def start_reading(self, start: int, end: int) -> None:
        """Has the kernel read a range into the page cache, without waiting for it; raises OSError."""
        for place in range(start, end, PIECE_BYTES):
            if _libc().readahead(self._descriptor, place, min(PIECE_BYTES, end - place)) != 0:
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number), str(self.path))

    def drop(self, start: int, end: int) -> int:
        """Drops a range from the page cache and returns how much of it stayed, because a process maps it."""
        os.posix_fadvise(self._descriptor, start, end - start, os.POSIX_FADV_DONTNEED)
        return self.resident_bytes(start, end)

    def close(self) -> None:
        """Unmaps and closes the file."""
        _libc().munmap(self._address, self.size)
        os.close(self._descriptor)
