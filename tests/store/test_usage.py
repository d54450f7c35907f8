"""Usage on disk: written off the caller's thread, bounded, and summed up without making unknown numbers zero."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from stoker.errors import StokerError
from stoker.records import UsageLine, UsageRecord
from stoker.store import recorder as recorder_module
from stoker.store.recorder import Recorder
from stoker.store.usage import UsageStore, read_last_used, read_usage
from support import fails

NOON = 1_767_268_800.0  # a day's middle, wherever this runs within twelve hours of UTC
DAY_S = 86400


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "usage.db"


@pytest.fixture
def recorder(file: Path) -> Iterator[Recorder]:
    recorder = Recorder(lambda: UsageStore(file, 36500, 10**6))
    yield recorder
    recorder.close()


def make(at: float = NOON, key: str = "alice", **more: Any) -> UsageRecord:
    facts: dict[str, Any] = {"path": "/v1/chat/completions", "request_id": "r1", "duration_s": 2.0, "status": 200}
    return UsageRecord(at, key, **{**facts, **more})


def count(file: Path) -> int:
    return sum(line.requests for line in read_usage(file, "key", None))


def test_usage_is_summed_up_and_unknown_is_not_zero(file: Path) -> None:
    with closing(UsageStore(file, 36500, 1000)) as store:
        store.write(
            [
                make(model="m", prompt_tokens=10, completion_tokens=5, ttft_s=0.5),
                make(model="m", prompt_tokens=20, completion_tokens=7, cached_tokens=3, ttft_s=1.5, duration_s=5.0),
                make(model="m", status=503),
                make(key="bob", status=None),
            ],
            NOON,
        )
    assert read_usage(file, "key", None) == (
        UsageLine("alice", 3, 1, 2, 30, 12, 3, 1.0, 3.0),
        UsageLine("bob", 1, 1, 0, None, None, None, None, 2.0),
    )
    assert [(line.name, line.requests) for line in read_usage(file, "model", None)] == [("", 1), ("m", 3)]


def test_usage_is_summed_up_by_day_and_since_a_time(file: Path) -> None:
    with closing(UsageStore(file, 36500, 1000)) as store:
        store.write([make(NOON - DAY_S), make(NOON), make(NOON + 1)], NOON)
    assert [line.requests for line in read_usage(file, "day", None)] == [1, 2]
    assert [line.requests for line in read_usage(file, "day", NOON)] == [2]
    assert read_usage(file, "day", NOON + 2) == ()


def test_it_is_bounded_by_age_and_number_and_the_last_use_stays_known(file: Path) -> None:
    with closing(UsageStore(file, 7, 100)) as store:
        store.write([make(NOON - 8 * DAY_S, "old")], NOON - 8 * DAY_S)
        store.write([make(NOON, "a")] * 90, NOON)
        assert [(line.name, line.requests) for line in read_usage(file, "key", None)] == [("a", 90)]
        for _ in range(5):
            store.write([make(NOON, "b")] * 30, NOON)
    assert count(file) == 100
    assert read_last_used(file) == {"old": NOON - 8 * DAY_S, "a": NOON, "b": NOON}


def test_the_file_stops_growing(file: Path) -> None:
    with closing(UsageStore(file, 7, 500)) as store:
        sizes = []
        for _ in range(160):
            store.write([make(request_id="x" * 100)] * 100, NOON)
            sizes.append(sum(part.stat().st_size for part in file.parent.iterdir()))
    assert max(sizes[80:]) <= max(sizes[:80]) * 1.1


def test_keeping_nothing_is_possible(file: Path) -> None:
    with closing(UsageStore(file, 0, 0)) as store:
        store.write([make()], NOON + 1)
    assert count(file) == 0


def test_the_last_use_is_the_latest_in_whatever_order_requests_end(file: Path) -> None:
    with closing(UsageStore(file, 36500, 1000)) as store:
        store.write([make(NOON + 5), make(NOON)], NOON)
        store.write([make(NOON + 1)], NOON)
    assert read_last_used(file) == {"alice": NOON + 5}


def test_reading_makes_no_file(file: Path) -> None:
    assert (read_usage(file, "key", None), read_last_used(file)) == ((), {})
    file.touch()
    assert (read_usage(file, "key", None), read_last_used(file)) == ((), {})


def test_a_file_that_is_no_database_is_told(file: Path) -> None:
    file.write_bytes(b"this is no database at all, but long enough to be one " * 40)
    with fails(StokerError, "cannot be used", "not a database"):
        read_usage(file, "key", None)


def test_what_was_noted_is_written_when_somebody_asks(recorder: Recorder, file: Path) -> None:
    for number in range(1200):
        recorder.note(make(NOON + number))
    recorder.flush()
    assert count(file) == 1200
    recorder.note(make())
    recorder.close()
    assert count(file) == 1201
    assert recorder.unwritten == 0


def test_a_disk_that_takes_nothing_costs_nothing_but_memory_for_a_while(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file.mkdir()  # SQLite cannot open it
    recorder = Recorder(lambda: UsageStore(file, 36500, 10**6))
    recorder.note(make())
    recorder.flush()
    recorder.note(make())
    recorder.flush()
    assert len([line for line in caplog.messages if "usage is not written" in line]) == 1
    file.rmdir()
    recorder.flush()
    assert count(file) == 2
    recorder.close()
    assert recorder.unwritten == 0


def test_a_store_held_by_another_program_is_tried_again(recorder: Recorder, file: Path) -> None:
    recorder.note(make())
    recorder.flush()
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        recorder.note(make())
        recorder.flush(0.05)
        assert count(file) == 1
        other.execute("ROLLBACK")
    recorder.flush()
    assert count(file) == 2


def test_what_waits_is_bounded_and_what_was_dropped_is_counted(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    file.mkdir()
    recorder = Recorder(lambda: UsageStore(file, 36500, 10**6))
    more = 500
    for number in range(recorder_module.MOST_WAITING + more):
        recorder.note(make())
        if number % 5000 == 0:
            recorder.flush()
    recorder.flush()
    assert recorder.unwritten == more
    assert len(recorder._waiting) == recorder_module.MOST_WAITING
    recorder.close()


@pytest.mark.parametrize("poison", [{"prompt_tokens": 2**70}, {"request_id": "\ud800"}])
def test_a_record_that_sqlite_cannot_hold_does_not_hold_the_others_up(
    recorder: Recorder, file: Path, poison: dict[str, Any]
) -> None:
    recorder.note(make(**poison))
    recorder.flush()
    recorder.note(make())
    recorder.flush()
    assert (count(file), recorder.unwritten) == (1, 1)
