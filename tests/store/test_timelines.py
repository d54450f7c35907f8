"""How the last starts went: kept for each service, bounded, and readable beside a daemon that writes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from stoker.errors import StokerError
from stoker.records import SavedService, Service, Stage, Start, State, Timeline
from stoker.store.last_rows import KEPT
from stoker.store.migrations import MIGRATIONS
from stoker.store.services import ServiceStore, read_saved
from stoker.store.timelines import TimelineStore, read_recent, read_services, read_starts
from support import fails, make_plan


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "stoker.db"


@pytest.fixture
def store(file: Path) -> Iterator[TimelineStore]:
    with closing(TimelineStore(file)) as store:
        yield store


def make_start(total_s: float, service: str = "small") -> Start:
    stages = (Stage("weights", 1.0, total_s - 1.0, "Loading weights took", bytes=10**9), Stage("graphs", None, None, "line"))
    timeline = Timeline("vllm", "0.26.0", 1.7e9, is_ready=True, total_s=total_s, unexplained_s=1.0, stages=stages)
    return Start(service, f"plan-{total_s:g}", timeline)


def test_a_start_is_read_as_it_was_written(store: TimelineStore, file: Path) -> None:
    store.write(make_start(131.0))
    assert read_starts(file, "small") == [make_start(131.0)]


def test_the_last_start_comes_first_and_old_ones_are_forgotten(store: TimelineStore, file: Path) -> None:
    store.write(make_start(1.0, "other"))
    for number in range(KEPT + 5):
        store.write(make_start(10.0 + number))
    totals = [start.timeline.total_s for start in read_starts(file, "small")]
    assert totals == [10.0 + number for number in reversed(range(5, KEPT + 5))]
    assert len(read_starts(file, "other")) == 1
    assert len(read_starts(file, "small", most=2)) == 2


def test_the_services_are_named_the_last_started_first(store: TimelineStore, file: Path) -> None:
    for service in ("a", "b", "a", "c", "b"):
        store.write(make_start(5.0, service))
    assert read_services(file) == ["b", "c", "a"]


def test_the_last_starts_of_all_are_read_at_once_the_oldest_first(store: TimelineStore, file: Path) -> None:
    for total_s in (10.0, 20.0, 30.0):
        store.write(make_start(total_s))
        store.write(make_start(total_s, "large"))
    found = [(start.service, start.timeline.total_s) for start in read_recent(file, 2)]
    assert found == [("small", 20.0), ("large", 20.0), ("small", 30.0), ("large", 30.0)]


def test_a_forgotten_service_has_no_starts(store: TimelineStore, file: Path) -> None:
    store.write(make_start(5.0))
    store.write(make_start(5.0, "other"))
    store.forget("small")
    assert read_services(file) == ["other"]


def test_a_start_that_nothing_timed_is_kept(store: TimelineStore, file: Path) -> None:
    start = Start(
        "small", "p", Timeline("llamacpp", None, None, is_ready=False, total_s=None, unexplained_s=None, stages=())
    )
    store.write(start)
    assert read_starts(file, "small") == [start]


def test_reading_makes_no_file_and_needs_none(file: Path) -> None:
    assert (read_starts(file, "small"), read_services(file), read_saved(file)) == ([], [], [])
    assert not file.exists()


def test_reading_changes_nothing_in_a_file_of_an_older_stoker(file: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as old:
        old.executescript(f"{MIGRATIONS[0]}; PRAGMA user_version = 1")
    before = file.read_bytes()
    assert (read_starts(file, "small"), read_services(file)) == ([], [])
    assert file.read_bytes() == before


def test_an_older_file_keeps_its_services_when_starts_are_added(file: Path) -> None:
    saved = SavedService(make_plan(), Service(State.READY, 5.0, "it answered"))
    with closing(sqlite3.connect(file, isolation_level=None)) as old:
        old.executescript(f"{MIGRATIONS[0]}; PRAGMA user_version = 1")
    with closing(ServiceStore(file)) as services:
        services.write(saved)
    with closing(TimelineStore(file)) as store:
        store.write(make_start(5.0))
    assert read_saved(file) == [saved]
    assert len(read_starts(file, "small")) == 1


def test_reading_goes_on_beside_a_writer(store: TimelineStore, file: Path) -> None:
    store.write(make_start(5.0))
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert len(read_starts(file, "small")) == 1


@pytest.mark.parametrize("saved", ["", "{}", "null", '{"engine": 1}'])
def test_a_row_that_is_no_start_is_told(store: TimelineStore, file: Path, saved: str) -> None:
    store.write(make_start(5.0))
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("UPDATE timelines SET saved = ?", (saved,))
    with fails(StokerError, "cannot be used", "why: "):
        read_starts(file, "small")


def test_a_file_that_is_no_database_is_told(file: Path) -> None:
    file.write_bytes(b"hello world, this is no database at all")
    with fails(StokerError, "cannot be used", "not a database"):
        read_starts(file, "small")
    with fails(StokerError, "cannot be used", "not a database"):
        read_saved(file)
