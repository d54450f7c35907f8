"""Reads the memory of a graphics card that has its own, for whoever waits for it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

from stoker.facts.machine.nvidia import watching_card
from stoker.records import CardMemory


class CardReader:
    """Reads the first GPU's own memory; the driver's library is opened when it is first asked, and stays open.

    It may be asked from any thread, and takes its time where the driver does.
    """

    def __init__(self, nvml: Any = None) -> None:
        self._nvml = nvml
        self._lock = threading.Lock()
        self._open = contextlib.ExitStack()
        self._ask: Callable[[], CardMemory | None] | None = None

    def read(self) -> CardMemory | None:
        """Returns what is free and who holds the rest; None without a GPU, with unified memory, or where nobody tells."""
        with self._lock:
            if self._ask is None:
                self._ask = self._open.enter_context(watching_card(self._nvml))
            found = self._ask()
            if found is None:  # a driver that is loaded anew is found by opening it anew
                self._close()
            return found

    def close(self) -> None:
        """Lets go of the driver."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        self._ask = None
        self._open.close()
