"""Files in the order of loading, cut into chunks, each with a page that tells when the loader has come by.

That page, the chunk's last, is left out when the chunk is read ahead. Once it is in the page cache, somebody has touched it:
by a map, by `read` or by `pread`, in any order, from any number of processes, in a container too, with no right over them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from stoker.fetch.page_cache import PAGE_BYTES, CachedFile, NotTold


class Stage(Enum):
    """How far a chunk has come."""

    WAITING = "not read yet"
    HELD = "read ahead of the loader"
    PASSED = "the loader has been there"
    DONE = "dropped, or left alone"


@dataclass(slots=True)
class Chunk:
    """A range of one file."""

    file: CachedFile
    start: int
    end: int
    stage: Stage = Stage.WAITING

    @property
    def size(self) -> int:
        """Its length in bytes."""
        return self.end - self.start

    @property
    def tell_tale(self) -> int:
        """Where the page begins that only the loader brings into the page cache."""
        return (self.end - 1) // PAGE_BYTES * PAGE_BYTES

    def is_passed(self) -> bool:
        """Tells whether the loader has touched its last page."""
        return self.file.has_page(self.tell_tale)

    def has_arrived(self) -> bool:
        """Tells whether what was asked for of it has come from the disk."""
        return self.tell_tale == self.start or self.file.has_page(self.tell_tale - PAGE_BYTES)

    def read(self) -> None:
        """Has all of it read but the last page; raises OSError."""
        self.file.start_reading(self.start, self.tell_tale)

    def drop(self) -> int:
        """Drops it and returns how many bytes a process still maps."""
        return self.file.drop(self.start, self.end)


def open_chunks(files: Iterable[Path], chunk_bytes: int) -> tuple[list[Chunk], list[str]]:
    """Returns the chunks of all files that can be followed, and what is wrong with the others."""
    chunks: list[Chunk] = []
    troubles = []
    for path in files:
        try:
            file = CachedFile(path)
        except (OSError, NotTold) as problem:
            troubles.append(f"{path.name}: {say(problem)}")
            continue
        chunks += [Chunk(file, at, min(at + chunk_bytes, file.size)) for at in range(0, file.size, chunk_bytes)]
    return chunks, troubles


def say(problem: Exception) -> str:
    """Returns what went wrong without the path, which is said beside it."""
    return (problem.strerror or str(problem)) if isinstance(problem, OSError) else str(problem)
