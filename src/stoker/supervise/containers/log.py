"""Copies what a container prints into its service's file, each line once, over broken connections and restarted daemons.

Beside the file lies `FILE.seen`: the time of the last line that was copied, how many lines had that same time (podman 4.3
tells whole seconds), and how long the file was then. What is in the file beyond that length was copied just before a crash.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from pathlib import Path

import msgspec

from stoker.errors import StokerError
from stoker.records import Record
from stoker.supervise.containers.api import DockerApi

HEADER_BYTES = 8  # which stream, three zeros, and the length of what follows, the most significant byte first
LINE_BYTES = 1024**2  # a longer one is passed on in parts
RETRY_S = 1.0
SEEN_WIDTH = 256  # written over in place, in one call, so that there is never half of it
REST_LIMIT_S = 30.0


class Seen(Record, frozen=True):
    """How far a container's output was copied: to the `count`-th line of the time `at_us`; the file had `size` bytes."""

    container: str
    at_us: int = 0
    count: int = 0
    size: int = 0


class ContainerLog:
    """The output of one container on its way into a file."""

    def __init__(self, api: DockerApi, container: str, file: Path, has_terminal: bool = False) -> None:
        self._take_lines = take_plain if has_terminal else take_frames
        self._api = api
        self._container = container
        self._file = file
        self._seen_file = file.with_name(file.name + ".seen")
        self._seen = self._read_seen()
        self._beyond_bytes = self._count_beyond()

    def _read_seen(self) -> Seen:
        try:
            seen = msgspec.json.decode(self._seen_file.read_bytes(), type=Seen)
        except (OSError, msgspec.MsgspecError):
            seen = None
        return seen if seen and seen.container == self._container else Seen(self._container)

    def _count_beyond(self) -> int:
        if self._seen.at_us == 0 and self._seen.size == 0:
            self._save(size=self._size())
            self._append(b"")
        size = self._size()
        return size - self._seen.size if size >= self._seen.size else size  # smaller: it was rotated meanwhile

    def _size(self) -> int:
        try:
            return self._file.stat().st_size
        except OSError:
            return 0

    async def follow(self) -> None:
        """Copies what comes until it is cancelled; where the connection breaks, it goes on after the last line."""
        while True:
            with contextlib.suppress(StokerError):  # the container may live on without its engine's service
                await self._copy(follow=1)
            await asyncio.sleep(RETRY_S)

    async def read_rest(self) -> None:
        """Copies what the container had still to say when it ended.

        Not left to `follow`: podman without an event log never tells a follower that the container ended.
        """
        with contextlib.suppress(StokerError, TimeoutError):  # it was removed with its output, or its engine is gone
            async with asyncio.timeout(REST_LIMIT_S):
                await self._copy(follow=0)

    async def _copy(self, follow: int) -> None:
        words = {"stdout": 1, "stderr": 1, "timestamps": 1, "follow": follow}
        since = max(0, self._seen.at_us // 1_000_000 - 1)
        path = f"/containers/{self._container}/logs"
        async with self._api.stream("GET", path, **words, since=since) as blocks:
            await self._take(blocks, self._seen)

    async def _take(self, blocks: AsyncIterator[bytes], old: Seen) -> None:
        """Writes all lines after the last one seen; those before it come again because `since` counts whole seconds."""
        waiting, again = bytearray(), old.count
        async for block in blocks:
            waiting += block
            fresh: list[tuple[int, bytes]] = []
            for at_us, text in self._take_lines(waiting):
                if at_us < old.at_us:
                    continue
                if at_us == old.at_us and again:
                    again -= 1
                    continue
                fresh.append((at_us, text))
            self._write(fresh)

    def _write(self, lines: list[tuple[int, bytes]]) -> None:
        if not lines:
            return
        at_us, count = self._seen.at_us, self._seen.count
        for line_at_us, _ in lines:
            count = count + 1 if line_at_us == at_us else 1
            at_us = line_at_us
        text = b"".join(text for _, text in lines)
        skipped = min(self._beyond_bytes, len(text))
        self._beyond_bytes -= skipped
        self._append(text[skipped:])
        self._save(at_us=at_us, count=count, size=self._size() - self._beyond_bytes)

    def _append(self, text: bytes) -> None:
        with contextlib.suppress(OSError), self._file.open("ab") as out:  # where the disk is full, EngineLog says so
            out.write(text)

    def _save(self, **changes: int) -> None:
        self._seen = msgspec.structs.replace(self._seen, **changes)
        with contextlib.suppress(OSError):
            self._seen_file.parent.mkdir(parents=True, exist_ok=True)
            self._seen_file.touch(0o600)
            with self._seen_file.open("r+b", buffering=0) as out:
                out.write(msgspec.json.encode(self._seen).ljust(SEEN_WIDTH))


def take_frames(waiting: bytearray) -> Iterator[tuple[int, bytes]]:
    """Takes whole frames out of what was read, and yields the time and the text of each.

    A frame is a line with its newline, or a part of a long one; each begins with a time.
    """
    while len(waiting) >= HEADER_BYTES:
        end = HEADER_BYTES + int.from_bytes(waiting[4:HEADER_BYTES], "big")
        if len(waiting) < end:
            return
        frame = bytes(waiting[HEADER_BYTES:end])
        del waiting[:end]
        yield _timed(frame)


def take_plain(waiting: bytearray) -> Iterator[tuple[int, bytes]]:
    """Takes whole lines out of what a container with a terminal said: without frames, and each ended as for a terminal."""
    while (end := waiting.find(b"\n") + 1) or len(waiting) > LINE_BYTES:
        line = bytes(waiting[: end or LINE_BYTES])
        del waiting[: len(line)]
        yield _timed(line.replace(b"\r\n", b"\n"))


def _timed(line: bytes) -> tuple[int, bytes]:
    """Returns a line's time and the rest; one without a time is told from the others by its number alone."""
    said, _, text = line.partition(b" ")
    at_us = read_time_us(said)
    return (0, line) if at_us is None else (at_us, text)


def read_time_us(said: bytes) -> int | None:
    """Returns a time such as 2026-11-22T01:35:01.123456789Z as microseconds since the epoch; None where it is none."""
    try:
        when = datetime.fromisoformat(said.decode("ascii"))
    except ValueError:
        return None
    return round(when.timestamp() * 1_000_000)
