"""What is watched while the disk takes nothing: it goes on, says how much is lost, and loses no alert."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from stoker.flows.watch_log import POINT_S, WatchLog
from stoker.records.watching import Acted, Alert, WatchPoint
from stoker.store.watch import read_acts_since, read_alerts_since, read_points

NOON = 1_800_000_000.0
ALERT = Alert("errors", "coder", "warning", "coder fails", "3 of 5", "look", "firing", NOON, fired=NOON)
ACT = Acted(NOON, "errors", "coder", "restart", False, "3 of 5", "it is restarted")
KEPT = {"coder speed": [[1.0, 2.0]]}


def look(log: WatchLog, minute: int) -> None:
    """A look in that minute, and what there is to write after it."""
    log.note_point("coder", NOON + minute * POINT_S, WatchPoint(seconds=15, requests=1))
    asyncio.run(log.write(minute * POINT_S))


def test_minutes_are_lost_and_counted_and_alerts_wait_for_a_disk_that_takes_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "watch.db"
    file.mkdir()  # SQLite cannot open it
    log = WatchLog(file, lambda: KEPT)
    log.note_alert(ALERT)
    log.note_act(ACT)
    look(log, 0)
    look(log, 1)
    assert log.lost.endswith("2 minutes are lost until now")
    assert len([line for line in caplog.messages if "what is watched is not kept" in line]) == 1
    file.rmdir()
    look(log, 2)
    assert log.lost == ""
    assert [one.id for one in read_alerts_since(file, NOON - 1)] == ["errors"]
    assert [one.outcome for one in read_acts_since(file, NOON - 1)] == ["it is restarted"]
    _, points = read_points(file, "coder", NOON - 1, 600.0, 10)
    assert [at for at, _ in points] == [NOON + 2 * POINT_S]
