"""The lowest MemAvailable while an endpoint on this machine is asked for something large."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType
from urllib.parse import urlsplit

from stoker.box import Box, LocalBox
from stoker.config import LimitsConfig
from stoker.errors import StokerError
from stoker.facts.machine.memory import read_memory
from stoker.records import say_bytes

LOOK_S = 0.1
HERE = ("127.", "::1", "localhost")


class MemoryWatch:
    """Looks at the memory ten times a second as long as it is entered, if the address is of this machine.

    `low_bytes` is the lowest that was seen; None: it is another machine's, which does not tell. `url` None: so is the
    service behind a door of this machine.
    """

    def __init__(self, url: str | None, box: Box | None = None) -> None:
        self.low_bytes: int | None = None
        self._is_here = (urlsplit(url or "").hostname or "").startswith(HERE)
        self._box = box or LocalBox()
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> MemoryWatch:
        """Begins to look."""
        if self._is_here:
            self._look()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Looks a last time, and no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._note()

    def _look(self) -> None:
        self._note()
        self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def _note(self) -> None:
        with suppress(StokerError):  # a machine that does not tell is no fault of the endpoint
            free_bytes = read_memory(self._box).available_bytes
            self.low_bytes = free_bytes if self.low_bytes is None else min(self.low_bytes, free_bytes)

    @property
    def is_short(self) -> bool:
        """Whether less was free than has to stay free for the system."""
        return self.low_bytes is not None and self.low_bytes < LimitsConfig().memory_floor_bytes

    def __str__(self) -> str:
        """What is said of it after a finding; nothing where it is not known."""
        return "" if self.low_bytes is None else f"; {say_bytes(self.low_bytes)} of memory stayed free"
