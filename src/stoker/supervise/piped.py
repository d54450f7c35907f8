"""Runs a program that speaks in lines over its input and output, bounded in bytes, and ends it with its children."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence

from stoker.errors import StokerError
from stoker.launch.process import MARKER_VARIABLE
from stoker.supervise.process import Group, stop_group

LINE_LIMIT_BYTES = 4 * 1024**2
LINES_LIMIT = 1000
TOLD_LINES = 5
LEAVE_S, GRACE_S, KILL_LIMIT_S = 0.5, 2.0, 5.0


class Piped:
    """A running program, asked and answered in lines; `told` are the last lines of its standard error."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._read = 0
        self.told: deque[str] = deque(maxlen=TOLD_LINES)

    async def write_line(self, line: bytes) -> None:
        """Writes a line; raises StokerError where nobody reads any more."""
        pipe = self._process.stdin
        try:
            if pipe is None or pipe.is_closing():
                raise await self._ended()
            pipe.write(line + b"\n")
            await pipe.drain()
        except ConnectionError as problem:
            raise await self._ended() from problem

    async def read_line(self) -> bytes:
        """Returns the next line; raises StokerError where none comes any more, or where too much does."""
        self._read += 1
        if self._read > LINES_LIMIT:
            raise StokerError(f"it wrote over {LINES_LIMIT} lines without the answer")
        try:
            line = await self._process.stdout.readline() if self._process.stdout else b""
        except ValueError as problem:  # asyncio's name for a line beyond the limit
            raise StokerError(f"it wrote a line over {LINE_LIMIT_BYTES // 1024**2} MiB") from problem
        if not line:
            raise await self._ended()
        return line

    async def _ended(self) -> StokerError:
        """Says how the program ended, with what it told last; its end is seen a moment after that of its pipes."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), LEAVE_S)
        code = self._process.returncode
        said = "it closed its input or output" if code is None else f"it ended with exit code {code}"
        return StokerError(said, why=" / ".join(self.told))

    async def listen(self) -> None:
        """Takes in what the program says of itself, so that it never waits for somebody to read it."""
        while self._process.stderr and (piece := await self._process.stderr.read(4096)):
            self.told.extend(line for line in piece.decode(errors="replace").splitlines() if line.strip())

    async def drain(self) -> None:
        """Reads what an ended program left in its output: asyncio closes a pipe only at its end."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_S):
                while self._process.stdout and await self._process.stdout.read(LINE_LIMIT_BYTES):
                    pass
                await self._process.wait()

    async def leave(self) -> None:
        """Closes the program's input, by which a well-behaved one ends, and gives it a moment."""
        if self._process.stdin:
            self._process.stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), LEAVE_S)


@contextlib.asynccontextmanager
async def running(
    argv: Sequence[str], environment: Mapping[str, str], folder: str | None, marker: str
) -> AsyncIterator[Piped]:
    """Runs a program without a shell while the block runs; raises StokerError where it cannot be started.

    At the end none of its processes is left: they are known by the marker in their environment and by their session.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *argv, env={**environment, MARKER_VARIABLE: marker}, cwd=folder, start_new_session=True, limit=LINE_LIMIT_BYTES,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
    except (OSError, ValueError) as problem:
        raise StokerError(
            f"`{argv[0]}` could not be started", why=getattr(problem, "strerror", None) or str(problem)
        ) from problem
    piped = Piped(process)
    async with asyncio.TaskGroup() as tasks:
        listener = tasks.create_task(piped.listen())
        try:
            yield piped
        finally:
            await piped.leave()
            await stop_group(Group(marker, process.pid), GRACE_S, KILL_LIMIT_S)
            await piped.drain()
            listener.cancel()
