"""Waits that a hub asks for, and those after failures: shared by all workers, told, and limited in all."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime

from stoker.errors import NotReadyInTime

LONGEST_STEP_S = 30.0


class Stopped(Exception):
    """The fetch was told to stop; what is on disk stays."""


class Patience:
    """The waiting of one fetch. Workers that wait at the same time count once."""

    def __init__(self, limit_s: float, tell: Callable[[str], None]) -> None:
        self.limit_s, self.tell = limit_s, tell
        self.stop = threading.Event()
        self.spent_s = 0.0
        self._until = 0.0
        self._lock = threading.Lock()

    def wait(self, seconds: float, because: str) -> None:
        """Waits and says what for; raises NotReadyInTime where that goes beyond the limit, and Stopped where told to."""
        more_s = self._book(seconds, because)
        if more_s > 0:
            self.tell(f"{because}; waiting {seconds:.0f} s ({self.limit_s - self.spent_s:.0f} s of `patience_s` are left)")
        if self.stop.wait(seconds):
            raise Stopped

    def _book(self, seconds: float, because: str) -> float:
        with self._lock:
            now = time.monotonic()
            more_s = max(0.0, now + seconds - max(self._until, now))
            if self.spent_s + more_s > self.limit_s:
                raise NotReadyInTime(
                    f"the fetch waited for the hub as long as it may: {because}",
                    why=f"limit `patience_s` of [fetch] is {self.limit_s:.0f} s; {self.spent_s:.0f} s are spent and "
                    f"{more_s:.0f} s more were needed",
                    next_step="run the same command again later, it goes on where it stopped; or give --patience-s",
                )
            self.spent_s += more_s
            self._until = max(self._until, now + seconds)
            return more_s

    def check(self) -> None:
        """Raises Stopped where the fetch was told to stop."""
        if self.stop.is_set():
            raise Stopped


def step_s(failures: int) -> float:
    """Returns how long to wait after so many failures in a row: 1, 2, 4 ... s. Pure."""
    return float(min(LONGEST_STEP_S, 2 ** (failures - 1)))


def read_retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Returns the seconds that `Retry-After` asks for, as a number or a date; None where it is absent or nonsense. Pure."""
    said = headers.get("retry-after", "").strip()
    if said.isdecimal():
        return float(said[:9])
    try:
        return max(0.0, parsedate_to_datetime(said).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None
