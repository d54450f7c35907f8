"""Compares what answers said with what their engine counted: tokens that it did not generate came from somebody else."""

from __future__ import annotations

from typing import NamedTuple


class Seen(NamedTuple):
    """What an engine had counted, and what its answers had said by then, in tokens since each began to count."""

    generated: int
    said: int


class Ledger:
    """One engine's account, launch by launch. Pure."""

    def __init__(self) -> None:
        self._launch: object = None
        self._before: Seen | None = None
        self._is_suspect = False

    def judge(self, launch: object, now: Seen) -> int:
        """Returns how many tokens its answers said since the last look that it did not count; 0 where none.

        Only a difference that is there at two looks is told: an engine may count an answer a moment after its end. One that
        generated more has other clients, which is none of this.
        """
        before, self._launch, is_new = self._before, launch, launch != self._launch
        if before is None or is_new or now.generated < before.generated:
            self._before, self._is_suspect = now, False
            return 0
        missing = (now.said - before.said) - (now.generated - before.generated)
        if missing > 0 and not self._is_suspect:
            self._is_suspect = True
            return 0
        self._before, self._is_suspect = now, False
        return max(0, missing)
