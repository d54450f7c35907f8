"""What watching keeps: fine, then coarse, and never more than so much."""

from __future__ import annotations

from pathlib import Path

import pytest

from stoker.errors import StokerError
from stoker.records.watching import Acted, Alert, Silence, WatchPoint
from stoker.store.watch import (
    LEVELS,
    Batch,
    read_acts_since,
    read_alerts_since,
    read_learnt,
    read_points,
    read_silences,
    write_batch,
)

DAY_S = 86400
BEGIN = 1_700_006_400  # a multiple of two hours


def write(file: Path, minutes: range, **more: object) -> None:
    """Writes a point for each of some minutes, in one batch."""
    point = WatchPoint(60.0, 600, 1200, 900, 300, 300, running_most=2, available_least_bytes=7)
    points = {("coder", BEGIN + 60 * minute): point for minute in minutes}
    write_batch(file, Batch(points, **more))  # type: ignore[arg-type]


def alert(since: float, state: str = "firing") -> Alert:
    """An alert."""
    return Alert("errors", "coder", "warning", "t", "w", "f", state, since, since)  # type: ignore[arg-type]


def test_minutes_become_ten_minutes_and_hours_and_lose_nothing_of_their_sums(tmp_path: Path) -> None:
    file = tmp_path / "watch.db"
    write(file, range(240))
    for span_s, length_s in ((3600, 60), (DAY_S, 600), (90 * DAY_S, 7200)):
        step_s, points = read_points(file, "coder", BEGIN, span_s, 150)
        assert step_s == length_s
        assert sum(point.generated_tokens or 0 for _, point in points) == 600 * min(240, span_s // 60 + 1)
        assert {point.accept_rate for _, point in points} == {1 / 3}
        assert {point.running_most for _, point in points} == {2}
        assert {point.available_least_bytes for _, point in points} == {7}


def test_a_minute_that_comes_twice_is_one_as_when_a_clock_is_set_back(tmp_path: Path) -> None:
    file = tmp_path / "watch.db"
    write(file, range(3))
    write(file, range(3))
    _, points = read_points(file, "coder", BEGIN, 600, 150)
    assert [(point.seconds, point.generated_tokens) for _, point in points] == [(120.0, 1200)] * 3


def test_it_never_keeps_more_than_the_levels_allow(tmp_path: Path) -> None:
    file = tmp_path / "watch.db"
    step_s, most = LEVELS[0]
    write(file, range(most + 500), learnt={"coder eagle": [(1.0, 2.0)]})
    _, points = read_points(file, "coder", BEGIN, step_s * (most + 500), most + 500)
    assert len(points) <= most + 500
    _, fine = read_points(file, "coder", BEGIN, step_s * most, most)
    assert fine[0][0] == BEGIN + 500 * 60


def test_alerts_are_kept_from_when_they_fire_until_they_are_over_and_after(tmp_path: Path) -> None:
    file = tmp_path / "watch.db"
    write_batch(file, Batch({}, alerts=[alert(100.0), alert(200.0)]))
    write_batch(file, Batch({}, alerts=[alert(200.0, "resolved")]))
    assert [(one.since, one.state) for one in read_alerts_since(file, 150.0)] == [(200.0, "resolved"), (100.0, "firing")]
    assert [one.since for one in read_alerts_since(file, 500.0)] == [100.0]  # it still fires
    assert read_alerts_since(file, 0.0, "other") == ()


def test_acts_silences_and_what_was_learnt_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "watch.db"
    acted = Acted(5.0, "errors", "coder", "stop", False, "why", "it is stopped")
    write_batch(file, Batch({}, acts=[acted], silences=[Silence("*", "coder", 9.0)], learnt={"coder eagle": [(1.0, 2.0)]}))
    assert read_acts_since(file, 0.0) == (acted,)
    assert read_silences(file) == (Silence("*", "coder", 9.0),)
    assert read_learnt(file) == {"coder eagle": [[1.0, 2.0]]}


def test_a_file_that_is_not_there_holds_nothing_and_a_broken_one_is_said(tmp_path: Path) -> None:
    file = tmp_path / "watch.db"
    assert read_points(file, "coder", BEGIN, 60, 10) == (60, [])
    assert read_alerts_since(file, 0.0) == ()
    file.write_bytes(b"this is no database" * 100)
    with pytest.raises(StokerError):
        read_learnt(file)
    with pytest.raises(StokerError):
        write(file, range(1))
