"""Reads a model's files into the page cache just ahead of the engine that loads them, and drops what is behind it.

It holds no more than a window, and nothing where memory is short. It is for loaders that go through the page cache by maps
or small reads; one that reads around it (O_DIRECT) never passes by, and then only the first window is read for nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

from stoker.errors import StokerError
from stoker.fetch.chunks import Chunk, Stage, open_chunks, say
from stoker.fetch.page_cache import CachedFile
from stoker.records import GIB, MIB, Memory, ReadAheadResult

WINDOW_BYTES = 2 * GIB
FLOOR_BYTES = 4 * GIB
# Larger than twice what the kernel reads around a page fault (read_ahead_kb, seen up to 8192), so that a fault in one chunk
# does not bring in the tell-tale page of the next.
CHUNK_BYTES = 16 * MIB
MOST_IN_FLIGHT = 4  # chunks; more would make the loader's own reads queue behind ours
BUSY_S = 0.005
IDLE_S = 0.05
SURVEY_S = 1.0
DONE, STOPPED, LOADER_ENDED = "all files were loaded", "it was stopped", "the loader has ended"
SHORT_OF_MEMORY = "memory fell below the floor"


class ReadAhead:
    """Follows one loader over files in their load order. `run` belongs to a thread of its own and never raises."""

    def __init__(
        self,
        files: Sequence[Path],
        pids: Callable[[], list[int]],
        window_bytes: int = WINDOW_BYTES,
        *,
        read_memory: Callable[[], Memory],
        floor_bytes: int = FLOOR_BYTES,
        chunk_bytes: int = CHUNK_BYTES,
        survey_s: float = SURVEY_S,
    ) -> None:
        """Takes files; `pids` and `read_memory` are called from the thread of `run`. No pid means the loader has ended."""
        self._files, self._pids, self._read_memory = files, pids, read_memory
        self._window_bytes, self._floor_bytes, self._chunk_bytes = window_bytes, floor_bytes, chunk_bytes
        self._stop = threading.Event()
        self._chunks: list[Chunk] = []
        self._held: list[Chunk] = []  # in the order in which they were read
        self._passed: list[Chunk] = []
        self._mapped: dict[int, Chunk] = {}
        self._cursor = 0
        self._troubles: list[str] = []
        self._read = self._dropped = self._there = self._most_held = 0
        self._survey_s, self._next_survey_s = survey_s, 0.0
        self._held_was_used = False

    def stop(self) -> None:
        """Ends `run` soon; from any thread."""
        self._stop.set()

    def run(self) -> ReadAheadResult:
        """Reads ahead until the files are loaded, the loader ends, memory is short or `stop` is called."""
        began = time.monotonic()
        self.open()
        ended = None
        try:
            while ended is None:
                self._stop.wait(BUSY_S if self._in_flight() else IDLE_S)
                ended = self.step()
        finally:
            self.close()
        return self.result(ended, time.monotonic() - began)

    def open(self) -> None:
        """Opens the files and leaves alone what is in the page cache already."""
        self._chunks, self._troubles = open_chunks(self._files, self._chunk_bytes)
        for chunk in self._chunks:
            if chunk.is_passed():
                self._leave(chunk)

    def step(self) -> str | None:
        """Looks how far the loader is, drops what is behind it and reads what is ahead; returns why it ended, or None."""
        if self._stop.is_set():
            return STOPPED
        allowed = self._allowed_bytes()
        if allowed is None:
            return SHORT_OF_MEMORY
        self._drop_passed()
        self._look()
        if time.monotonic() >= self._next_survey_s:
            self._next_survey_s = time.monotonic() + self._survey_s
            if not self._pids():
                return LOADER_ENDED
            self._survey()
        self._read_ahead(allowed)
        at_work = self._held or self._passed or self._mapped or self._next_waiting()
        return None if at_work else DONE

    def close(self) -> None:
        """Drops what it still holds and closes the files."""
        self._passed += self._held
        self._held = []
        self._drop_passed()
        self._drop_mapped()
        for file in {id(chunk.file): chunk.file for chunk in self._chunks}.values():
            file.close()

    def result(self, ended: str, seconds: float) -> ReadAheadResult:
        """Returns what was done so far."""
        mapped = sum(chunk.size for chunk in self._mapped.values())
        return ReadAheadResult(
            ended=ended, read_bytes=self._read, dropped_bytes=self._dropped, already_there_bytes=self._there,
            still_mapped_bytes=mapped, most_held_bytes=self._most_held, seconds=round(seconds, 3),
            troubles=tuple(dict.fromkeys(self._troubles)),
        )  # fmt: skip

    def _allowed_bytes(self) -> int | None:
        """Half of what memory has above the floor, and no more than the window; None below the floor."""
        try:
            above = self._read_memory().available_bytes - self._floor_bytes
        except StokerError as problem:
            self._troubles.append(problem.what)
            return None
        return None if above < 0 else min(self._window_bytes, above // 2)

    def _look(self) -> None:
        """Finds those held chunks that the loader has used."""
        used = [chunk for chunk in self._held if chunk.is_passed()]
        self._held_was_used |= bool(used)
        self._pass(used)

    def _pass(self, chunks: list[Chunk]) -> None:
        for chunk in chunks:
            chunk.stage = Stage.PASSED
        self._passed += chunks
        self._held = [chunk for chunk in self._held if chunk.stage is Stage.HELD]

    def _survey(self) -> None:
        """Goes where the loader is; lets go of files that changed, and of what was mapped before."""
        for file in {id(chunk.file): chunk.file for chunk in self._held}.values():
            if change := file.changed():
                self._give_up(file, change)
        found = [at for at, chunk in enumerate(self._chunks) if chunk.stage is Stage.WAITING and chunk.is_passed()]
        self._pass([self._chunks[at] for at in found])
        if found and not self._held_was_used:
            self._release_held()
            self._cursor = found[-1] + 1
        self._held_was_used = False
        self._drop_mapped()

    def _release_held(self) -> None:
        for chunk in self._held:
            self._drop(chunk)
            chunk.stage = Stage.WAITING
        self._held = []

    def _drop_passed(self) -> None:
        """Drops what the loader had used at the last look: by now it has what it was reading then."""
        for chunk in self._passed:
            self._drop(chunk)
            chunk.stage = Stage.DONE
        self._passed = []

    def _drop(self, chunk: Chunk) -> None:
        try:
            mapped = chunk.drop()
        except OSError as problem:
            self._troubles.append(f"{chunk.file.path.name}: {say(problem)}")
            return
        if mapped:
            self._mapped[id(chunk)] = chunk
        else:
            self._mapped.pop(id(chunk), None)
            self._dropped += chunk.size

    def _drop_mapped(self) -> None:
        """Tries one chunk of each file again, and the others where that went: a loader unmaps files, not chunks."""
        still: set[int] = set()
        for key, chunk in list(self._mapped.items()):
            if chunk.stage is Stage.DONE and id(chunk.file) not in still:
                self._drop(chunk)
                still |= {id(chunk.file)} if key in self._mapped else set()

    def _read_ahead(self, allowed_bytes: int) -> None:
        """Reads the next chunks as far as the window and what is under way allow."""
        while self._in_flight() < MOST_IN_FLIGHT and (chunk := self._next_waiting()) is not None:
            if self._held_bytes() + chunk.size > allowed_bytes:
                return
            if change := chunk.file.changed():
                self._give_up(chunk.file, change)
            elif chunk.is_passed():
                self._pass([chunk])
            else:
                self._hold(chunk)

    def _hold(self, chunk: Chunk) -> None:
        try:
            chunk.read()
        except OSError as problem:
            self._give_up(chunk.file, say(problem))
            return
        chunk.stage = Stage.HELD
        self._held.append(chunk)
        self._read += chunk.size
        self._most_held = max(self._most_held, self._held_bytes())

    def _give_up(self, file: CachedFile, why: str) -> None:
        """Has no more to do with a file; what was held of it would never be passed, nor arrive."""
        self._troubles.append(f"{file.path.name}: {why}")
        for chunk in self._chunks:
            if chunk.file is file and chunk.stage in (Stage.WAITING, Stage.HELD):
                if chunk.stage is Stage.HELD:
                    self._drop(chunk)
                chunk.stage = Stage.DONE
        self._held = [chunk for chunk in self._held if chunk.stage is Stage.HELD]

    def _leave(self, chunk: Chunk) -> None:
        chunk.stage = Stage.DONE
        self._there += chunk.size

    def _next_waiting(self) -> Chunk | None:
        """The next chunk that nobody has read, from the loader's place on, and then from the beginning."""
        for place in (self._cursor, 0):
            for at, chunk in islice(enumerate(self._chunks), place, None):
                if chunk.stage is Stage.WAITING:
                    self._cursor = at
                    return chunk
        return None

    def _held_bytes(self) -> int:
        return sum(chunk.size for chunk in (*self._held, *self._passed))

    def _in_flight(self) -> int:
        return sum(not chunk.has_arrived() for chunk in self._held[-MOST_IN_FLIGHT:])
