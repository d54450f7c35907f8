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
        self._suspected: int | None = None  # what answers had said at the look before, where it was more than was counted

    def judge(self, launch: object, now: Seen) -> int:
        """Returns how many tokens its answers said that it did not count, each time that there are any; 0 where none.

        Only what had been said at the look before and is not counted at this one is told: an engine may count an answer a
        moment after its end. One that generated more has other clients, which is none of this.
        """
        before, self._launch, is_new = self._before, launch, launch != self._launch
        if before is None or is_new or now.generated < before.generated:
            self._begin(now)
            return 0
        counted = now.generated - before.generated
        missing = 0 if self._suspected is None else max(0, self._suspected - before.said - counted)
        if missing or now.said - before.said <= counted:
            self._begin(now)
        else:
            self._suspected = now.said
        return missing

    def _begin(self, now: Seen) -> None:
        self._before, self._suspected = now, None
