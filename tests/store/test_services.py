"""The store: what was written is read back, whatever happens to the writer, the file or the disk."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from real_tools import run_on_a_small_disk
from stoker.errors import StokerError
from stoker.records import Handle, SavedService, Service, State
from stoker.store.migrations import MIGRATIONS
from stoker.store.services import ServiceStore
from support import fails, make_plan


def make_saved(name: str, why: str = "you asked for it") -> SavedService:
    return SavedService(
        make_plan(service=name), Service(State.READY, 1.0, why, wanted=True, launch=2), Handle(2, "m", 7, 99, "b", 8001, 5)
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "stoker.db"


@pytest.fixture
def store(file: Path) -> Iterator[ServiceStore]:
    with closing(ServiceStore(file)) as store:
        yield store


def test_a_new_store_is_empty(store: ServiceStore) -> None:
    assert store.read_all() == []


def test_what_was_written_is_read_back_by_name_and_after_a_restart(store: ServiceStore, file: Path) -> None:
    for name in ("b", "a", "c"):
        store.write(make_saved(name))
    assert [saved.plan.service for saved in store.read_all()] == ["a", "b", "c"]
    store.close()
    with closing(ServiceStore(file)) as again:
        assert again.read_all() == [make_saved("a"), make_saved("b"), make_saved("c")]


def test_a_second_write_replaces_the_first(store: ServiceStore) -> None:
    store.write(make_saved("a", "first"))
    store.write(make_saved("a", "second"))
    assert [saved.service.why for saved in store.read_all()] == ["second"]


def test_any_text_survives(store: ServiceStore) -> None:
    why = 'it\'s "quoted"; DROP TABLE services; \0 \n 日本 \U0001f525'
    store.write(make_saved("a", why))
    assert store.read_all()[0].service.why == why


def test_the_file_is_in_wal_mode_so_that_a_kill_loses_nothing(store: ServiceStore, file: Path) -> None:
    with closing(sqlite3.connect(file)) as other:
        assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert other.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)


def test_another_program_may_read_in_the_middle_of_a_transaction_of_its_own(store: ServiceStore, file: Path) -> None:
    store.write(make_saved("a"))
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN")
        assert other.execute("SELECT count(*) FROM services").fetchone() == (1,)
        store.write(make_saved("b"))
        assert other.execute("SELECT count(*) FROM services").fetchone() == (1,)
        other.execute("COMMIT")
        assert other.execute("SELECT count(*) FROM services").fetchone() == (2,)


def test_a_file_of_a_newer_stoker_is_left_alone(store: ServiceStore, file: Path) -> None:
    store.write(make_saved("a"))
    store.close()
    with closing(sqlite3.connect(file)) as other:
        other.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    before = file.read_bytes()
    with fails(StokerError, "written by a newer Stoker", f"schema is {len(MIGRATIONS) + 1}", "upgrade Stoker"):
        ServiceStore(file)
    assert file.read_bytes() == before


@pytest.mark.parametrize("content", [b"\0" * 8192, b"\0" * 100, b"hello world, this is no database", bytes(range(256)) * 16])
def test_a_file_that_is_no_database_is_told_and_not_overwritten(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with fails(StokerError, f"{file} cannot be used", "not a database", "move it away", "no model is lost"):
        ServiceStore(file)
    assert file.read_bytes() == content


def test_an_empty_file_is_a_new_store(file: Path) -> None:
    file.touch()
    with closing(ServiceStore(file)) as store:
        assert store.read_all() == []


def test_a_file_whose_pages_are_damaged_is_told(store: ServiceStore, file: Path) -> None:
    for number in range(200):
        store.write(make_saved(f"s{number}"))
    store.close()
    raw = bytearray(file.read_bytes())
    raw[4096:] = b"\xaa" * (len(raw) - 4096)
    file.write_bytes(raw)
    with fails(StokerError, "cannot be used", "malformed", "move it away"), closing(ServiceStore(file)) as damaged:
        damaged.read_all()


@pytest.mark.parametrize("saved", ["", "{}", "null", '{"plan": 1}', "[]", "{" * 1000])
def test_a_row_that_is_no_service_is_told(store: ServiceStore, file: Path, saved: str) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("INSERT INTO services VALUES ('a', ?)", (saved,))
    with fails(StokerError, "cannot be used", "why: "):
        store.read_all()


def test_a_row_that_is_not_even_text_is_told(store: ServiceStore, file: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("INSERT INTO services VALUES ('a', CAST(x'ff00ff' AS TEXT))")
    with fails(StokerError, "cannot be used"):
        store.read_all()


def test_a_missing_folder_says_what_to_do(tmp_path: Path) -> None:
    with fails(StokerError, "cannot be used", "unable to open", "STOKER_STATE"):
        ServiceStore(tmp_path / "nowhere" / "stoker.db")


def test_a_file_that_another_program_holds_is_not_said_to_be_broken(store: ServiceStore, file: Path) -> None:
    store._database.execute("PRAGMA busy_timeout = 50")
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with fails(StokerError, "database is locked", "close the other program"):
            store.write(make_saved("a"))
        other.execute("ROLLBACK")
    store.write(make_saved("a"))


def test_a_killed_writer_never_loses_what_it_had_written(file: Path) -> None:
    written: set[str] = set()
    for life in range(3):
        program = str(Path(__file__).with_name("service_writer.py"))
        with subprocess.Popen((sys.executable, program, str(file), str(life)), stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            for _ in range(150):
                written.add(child.stdout.readline().strip())
            child.send_signal(signal.SIGKILL)
            written |= {line.strip() for line in child.stdout.read().split("\n")[:-1]}
    assert len(written) >= 450
    with closing(ServiceStore(file)) as store:
        assert written <= {saved.plan.service for saved in store.read_all()}


SMALL_DISK = Path(__file__).with_name("small_disk.py")


def test_a_full_disk_is_told_and_what_was_written_stays_readable(tmp_path: Path) -> None:
    printed = run_on_a_small_disk(tmp_path, 1, SMALL_DISK, "full")
    assert "full" in printed
    assert "next: free some disk space" in printed
    assert "all that was written is there" in printed
    assert "writing works again" in printed


def test_a_disk_that_was_full_from_the_start_is_told(tmp_path: Path) -> None:
    assert "next: free some disk space" in run_on_a_small_disk(tmp_path, 1, SMALL_DISK, "full from the start")


def test_a_read_only_disk_is_told(tmp_path: Path) -> None:
    printed = run_on_a_small_disk(tmp_path, 1, SMALL_DISK, "read-only")
    assert "cannot be used" in printed
    assert "writable" in printed
