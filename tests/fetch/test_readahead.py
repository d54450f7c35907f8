"""The read-ahead on real files and the real page cache, with loaders that map, read, jump about, stop half-way or vanish."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stoker.errors import StokerError
from stoker.fetch.page_cache import CachedFile
from stoker.fetch.readahead import ReadAhead
from stoker.records import GIB, MIB, Memory, ReadAheadResult

CHUNK, WINDOW, FILE = MIB, 4 * MIB, 12 * MIB
LIMIT_S = 60
PLENTY = Memory(64 * GIB, 32 * GIB, 30 * GIB, GIB, 0, 0)
REAL_LOADER = """
import mmap, sys
for path in sys.argv[1:]:
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        print(sum(mapped[place] for place in range(0, len(mapped), 4096)))
"""
STRANGER = """
import os, pathlib
from stoker.fetch.page_cache import CachedFile, NotTold
if os.geteuid() == 0:
    os.setuid(65534)
try:
    CachedFile(pathlib.Path("/etc/passwd"))
except NotTold as problem:
    print(problem)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder whose files can be dropped from the page cache, which those in memory cannot."""
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix=".on-disk-") as beside:
        for place in (tmp_path, Path(beside)):
            if cached(make_file(place / "probe")) == 0:
                yield place
                return
    pytest.fail("neither the temporary folder nor the checkout is on a disk")


def make_file(path: Path, size: int = FILE) -> Path:
    """Writes a file and drops it from the page cache."""
    with path.open("wb") as file:
        file.write(os.urandom(size))
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return path


def cached(*paths: Path) -> int:
    """Returns how much of the files is in the page cache."""
    total = 0
    for path in paths:
        file = CachedFile(path)
        total += file.resident_bytes(0, file.size)
        file.close()
    return total


def read_at(path: Path, start: int, end: int) -> None:
    """Reads a range as a loader does, with no read-ahead of the kernel's own, so that the counts are exact."""
    with path.open("rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        os.pread(file.fileno(), end - start, start)


def wait_until(holds: Callable[[], bool]) -> None:
    """Waits for the disk."""
    until = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < until, "the disk did not deliver in time"
        time.sleep(0.001)


def make(files: list[Path], **changes: Any) -> ReadAhead:
    """Returns a read-ahead with small chunks for a loader that lives."""
    how: dict[str, Any] = {
        "pids": lambda: [os.getpid()], "window_bytes": WINDOW, "read_memory": lambda: PLENTY, "floor_bytes": GIB,
        "chunk_bytes": CHUNK, "survey_s": 0.0,
    }  # fmt: skip
    return ReadAhead(files, **(how | changes))


def fill(ahead: ReadAhead, files: list[Path], held: int) -> None:
    """Steps until so much has come from the disk; what has come never is more than the window."""

    def has_come() -> bool:
        assert ahead.step() is None
        now = cached(*files)
        assert now <= WINDOW
        return now >= held

    wait_until(has_come)


def held_of(chunks: int) -> int:
    """What is cached of chunks read ahead: all but their last pages."""
    return chunks * (CHUNK - mmap.PAGESIZE)


def test_reads_a_window_ahead_and_no_more(folder: Path) -> None:
    files = [make_file(folder / "a")]
    ahead = make(files)
    ahead.open()
    fill(ahead, files, held_of(4))
    for _ in range(50):
        assert ahead.step() is None
    assert cached(*files) == held_of(4)
    ahead.close()
    assert cached(*files) == 0
    assert ahead.result("", 0).most_held_bytes == WINDOW


@pytest.mark.parametrize("files_in_order", [True, False])
def test_follows_a_reader_through_all_files_and_never_holds_more_than_the_window(folder: Path, files_in_order: bool) -> None:
    files = [make_file(folder / name) for name in "abc"]
    ahead = make(files)
    ahead.open()
    fill(ahead, files, held_of(4))
    ended = None
    for path in files if files_in_order else reversed(files):
        for start in range(0, FILE, CHUNK):
            read_at(path, start, start + CHUNK)
            assert cached(*files) <= WINDOW + 2 * CHUNK  # the window, and what the loader reads while we look elsewhere
            ended = ahead.step()
            assert cached(*files) <= WINDOW + CHUNK
    wait_until(lambda: ahead.step() is not None)
    result = ahead.result("", 0)
    ahead.close()
    assert ended is None
    assert cached(*files) == 0
    assert result.most_held_bytes <= WINDOW
    assert result.troubles == ()
    assert result.read_bytes > (2 * FILE if files_in_order else WINDOW)


def test_helps_two_readers_of_two_files_and_lets_go_of_both(folder: Path) -> None:
    files = [make_file(folder / name) for name in "ab"]
    ahead = make(files)
    ahead.open()
    fill(ahead, files, held_of(4))
    for start in range(0, FILE, CHUNK):
        for path in files:
            read_at(path, start, start + CHUNK)
        ahead.step()
        assert cached(*files) <= WINDOW + 2 * CHUNK
    wait_until(lambda: ahead.step() == "all files were loaded")
    assert cached(*files) == 0
    assert ahead.result("", 0).dropped_bytes >= 2 * FILE
    ahead.close()


def test_drops_what_was_mapped_once_it_is_unmapped(folder: Path) -> None:
    files = [make_file(folder / "a", 4 * MIB)]
    ahead = make(files, window_bytes=8 * MIB)
    ahead.open()
    fill(ahead, files, held_of(4))
    with files[0].open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        mapped.madvise(mmap.MADV_RANDOM)
        assert sum(mapped[place] for place in range(0, len(mapped), mmap.PAGESIZE)) > 0
        for _ in range(5):
            assert ahead.step() is None  # all is read and used, but the loader still maps it
        assert ahead.result("", 0).still_mapped_bytes == 4 * MIB
        assert cached(*files) == 4 * MIB
    wait_until(lambda: ahead.step() == "all files were loaded")
    assert cached(*files) == 0
    result = ahead.result("", 0)
    assert (result.still_mapped_bytes, result.dropped_bytes) == (0, 4 * MIB)
    ahead.close()


def test_leaves_alone_what_was_cached_before(folder: Path) -> None:
    files = [make_file(folder / "a")]
    files[0].read_bytes()
    result = make(files).run()
    assert (result.ended, result.read_bytes, result.already_there_bytes) == ("all files were loaded", 0, FILE)
    assert result.dropped_bytes == 0
    assert cached(*files) > FILE - CHUNK  # the kernel itself may take a few pages for others: 16 KiB were seen to go


def test_lets_go_of_what_the_loader_skips(folder: Path) -> None:
    files = [make_file(folder / name) for name in "ab"]
    ahead = make(files)
    ahead.open()
    fill(ahead, files, held_of(4))
    read_at(files[1], 0, CHUNK)  # the first file is passed over
    wait_until(lambda: ahead.step() is not None or cached(files[1]) >= held_of(4))
    assert cached(files[0]) == 0
    ahead.close()


def test_ends_below_the_floor_and_holds_nothing(folder: Path) -> None:
    files = [make_file(folder / "a")]
    left = iter([PLENTY] * 3 + [msgspec.structs.replace(PLENTY, available_bytes=GIB - 1)] * 2)
    result = make(files, read_memory=lambda: next(left)).run()
    assert result.ended == "memory fell below the floor"
    assert result.read_bytes > 0
    assert cached(*files) == 0


def test_holds_half_of_what_memory_has_above_the_floor(folder: Path) -> None:
    files = [make_file(folder / "a")]
    short = msgspec.structs.replace(PLENTY, available_bytes=GIB + 4 * MIB)
    ahead = make(files, read_memory=lambda: short)
    ahead.open()
    fill(ahead, files, held_of(2))
    for _ in range(20):
        ahead.step()
    ahead.close()
    assert ahead.result("", 0).most_held_bytes == 2 * MIB


def test_ends_where_memory_cannot_be_read(folder: Path) -> None:
    def fails() -> Memory:
        raise StokerError("the machine's memory is unknown")

    result = make([make_file(folder / "a")], read_memory=fails).run()
    assert (result.read_bytes, result.troubles) == (0, ("the machine's memory is unknown",))


def test_ends_with_the_loader(folder: Path) -> None:
    result = make([make_file(folder / "a")], pids=list).run()
    assert (result.ended, result.read_bytes) == ("the loader has ended", 0)


def test_tells_of_files_that_it_cannot_follow(folder: Path) -> None:
    (folder / "empty").touch()
    result = make([folder / "absent", folder / "empty", folder]).run()
    assert result.read_bytes == 0
    assert [trouble.partition(":")[0] for trouble in result.troubles] == ["absent", "empty", folder.name]


def test_does_not_believe_that_all_of_a_strangers_file_is_cached() -> None:
    done = subprocess.run([sys.executable, "-c", STRANGER], capture_output=True, text=True, check=True)
    assert done.stdout == "it belongs to another user, so the kernel does not tell what is cached of it\n"


@pytest.mark.parametrize(
    ("change", "trouble"),
    [
        (lambda path: os.truncate(path, 5 * MIB), "a: it was 12,582,912 bytes long and is 5,242,880 now"),
        (lambda path: os.truncate(path, 0), "a: it was 12,582,912 bytes long and is 0 now"),
        (lambda path: path.unlink(), "a: it went away: No such file or directory"),
        (lambda path: make_file(path.with_name("new")).rename(path), "a: it was replaced by another file"),
    ],
)
def test_gives_up_a_file_that_changes(folder: Path, change: Callable[[Path], object], trouble: str) -> None:
    files = [make_file(folder / "a"), make_file(folder / "b")]
    ahead = make(files)
    ahead.open()
    fill(ahead, files, held_of(4))
    change(files[0])
    wait_until(lambda: ahead.step() is not None or cached(files[1]) >= held_of(4))
    ahead.close()
    assert ahead.result("", 0).troubles == (trouble,)


def test_follows_a_real_process_from_a_thread_and_is_stopped(folder: Path) -> None:
    files = [make_file(folder / name, 64 * MIB) for name in "abc"]
    unread = make_file(folder / "d", 64 * MIB)
    results: list[ReadAheadResult] = []
    with subprocess.Popen([sys.executable, "-c", REAL_LOADER, *map(str, files)], stdout=subprocess.PIPE) as loader:
        ahead = make([*files, unread], pids=lambda: [os.getpid()], chunk_bytes=16 * MIB, window_bytes=64 * MIB)
        thread = threading.Thread(target=lambda: results.append(ahead.run()))
        thread.start()
        assert loader.wait(LIMIT_S) == 0
        ahead.stop()
        thread.join(LIMIT_S)
    assert results[0].ended == "it was stopped"
    assert results[0].most_held_bytes <= 64 * MIB
    assert results[0].troubles == ()
    assert cached(unread) < 64 * MIB, "it may have begun the next file before it was told to stop"
