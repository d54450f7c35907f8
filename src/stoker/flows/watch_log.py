"""Keeps what watching saw: points by the minute, alerts and acts as they come, and what was learnt twice an hour.

Where the disk takes nothing, watching goes on and says what it lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from stoker.errors import StokerError
from stoker.records.watching import Acted, Alert, Silence, WatchPoint
from stoker.store.watch import Batch, Learnt, write_batch

POINT_S, LEARNT_S = 60, 1800.0
MOST_UNWRITTEN = 500  # alerts and acts that wait for a disk which takes none
logger = logging.getLogger("stoker.watch")


class WatchLog:
    """What is to be written next; `lost` says what could not be."""

    def __init__(self, file: Path, learnt: Callable[[], Learnt]) -> None:
        self.lost = ""
        self._file = file
        self._learnt = learnt
        self._points: dict[tuple[str, int], WatchPoint] = {}
        self._alerts: list[Alert] = []
        self._acts: list[Acted] = []
        self._silences: list[Silence] = []
        self._written_s = self._learnt_s = float("-inf")
        self._lost_points = 0

    def note_point(self, service: str, epoch: float, point: WatchPoint) -> None:
        """Takes a look."""
        key = service, int(epoch) // POINT_S * POINT_S
        before = self._points.get(key)
        self._points[key] = point if before is None else before.joined(point)

    def note_alert(self, alert: Alert) -> None:
        """Takes an alert that fires or is over."""
        self._alerts = [*self._alerts[-MOST_UNWRITTEN:], alert]

    def note_act(self, acted: Acted) -> None:
        """Takes something that was done."""
        self._acts = [*self._acts[-MOST_UNWRITTEN:], acted]

    def note_silence(self, silence: Silence) -> None:
        """Takes a silence."""
        self._silences.append(silence)

    async def write(self, at_s: float, is_last: bool = False) -> None:
        """Writes what there is, once a minute, or at once where something happened."""
        is_due = at_s - self._written_s >= POINT_S or self._alerts or self._acts or self._silences
        if not is_due and not is_last:
            return
        teaches = is_last or at_s - self._learnt_s >= LEARNT_S
        learnt = self._learnt() if teaches else {}
        batch = Batch(dict(self._points), tuple(self._alerts), tuple(self._acts), learnt, tuple(self._silences))
        self._written_s = at_s
        try:
            await asyncio.to_thread(write_batch, self._file, batch)
        except StokerError as problem:
            self._say_lost(problem)
        else:
            self._learnt_s = at_s if teaches else self._learnt_s
            self._alerts, self._acts, self._silences, self.lost = [], [], [], ""
        self._points.clear()

    def _say_lost(self, problem: StokerError) -> None:
        """Points are let go, since they are many; alerts and acts wait for a disk that takes them."""
        self._lost_points += len(self._points)
        if not self.lost:
            logger.warning("what is watched is not kept: %s", problem.why)
        self.lost = f"what is watched is not kept ({problem.why}); {self._lost_points} minutes are lost until now"
