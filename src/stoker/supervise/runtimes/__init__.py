"""The ways to run an engine, one file each: a process, a container, a unit of systemd's.

A service's hands know them by this interface alone.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, runtime_checkable

from stoker.errors import StokerError
from stoker.records import Handle, Plan, Record


class StoppedElsewhere(StokerError):
    """Somebody else stopped an engine, by a way that is theirs to use: it is not to be started again."""


class Start(Record, frozen=True):
    """Everything that one launch needs.

    `marker` (`INSTANCE/SERVICE/LAUNCH`) tells this launch from all others; `key` is what the engine asks of its clients; the
    engine's output is appended to `log`. `folder` is for what lives as long as the launch, and may be emptied before it.
    """

    plan: Plan
    launch: int
    marker: str
    port: int
    key: str
    log: Path
    folder: Path


class Running(Protocol):
    """An engine that was started, by this daemon or a former one. `pid` is its first process, where the host sees it."""

    @property
    def pid(self) -> int | None:
        """Its first process."""

    async def wait(self) -> str:
        """Waits until it has ended and says how: 'exit code 1', 'killed by SIGKILL', or 'ended'.

        Raises StoppedElsewhere where somebody else has stopped it, so that it has to stay down.
        """

    def is_alive(self) -> bool:
        """Tells whether it still runs."""

    def pids(self) -> list[int]:
        """Returns its processes, as far as the host sees them; may be called from another thread."""

    def memory_bytes(self) -> int | None:
        """Returns the resident bytes of all its processes; None if none is seen."""

    def close(self) -> None:
        """Lets go of it without ending it."""


@runtime_checkable
class Keyed(Protocol):
    """An engine that asks its clients for a key of its own, since somebody else has started it."""

    key: str | None


class Runtime(Protocol):
    """Starts, finds and ends the engines of one service."""

    async def start(self, start: Start, handle: Handle, save: Callable[[Handle], None]) -> Running:
        """Starts an engine, saving the handle as soon as more of it is known; raises StokerError or OSError."""

    async def find(self, handle: Handle) -> Running | None:
        """Returns the engine of a handle if it is the very one that was started then and still lives."""

    async def keep_good(self, running: Running, image: str) -> object:
        """Keeps what a service was READY in, where that could be taken away; `image` is the plan's name for it."""

    async def stop(self, running: Running | None, grace_s: float, kill_limit_s: float) -> str:
        """Ends everything that any launch of the service left: politely, after `grace_s` by force.

        Returns what outlived even that, or nothing.
        """
