"""Runs of benchmarks on disk: nothing that was measured is lost, and they do not grow without end."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier

import msgspec
import pytest

from bench_samples import make_cell, make_figure, make_repeats, make_result, make_run
from real_tools import run_on_a_small_disk
from stoker.errors import StokerError, WrongUse
from stoker.records import TokensRead
from stoker.store.bench import BenchStore, read_bench_lines, read_bench_run, read_unfinished
from stoker.store.migrations import BENCH
from support import fails

SMALL_DISK = Path(__file__).with_name("small_bench_disk.py")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "bench.db"


@pytest.fixture
def store(file: Path) -> Iterator[BenchStore]:
    with closing(BenchStore(file)) as store:
        yield store


def test_many_first_users_at_once_all_get_their_file(tmp_path: Path) -> None:
    for number in range(8):
        file, together = tmp_path / f"{number}.db", Barrier(6)

        def write_one(_: int, file: Path = file, together: Barrier = together) -> int:
            together.wait()
            with closing(BenchStore(file)) as store:
                return store.write(make_run())

        with ThreadPoolExecutor(6) as users:
            assert sorted(users.map(write_one, range(6))) == [1, 2, 3, 4, 5, 6]


def test_a_run_comes_back_as_it_was_written(store: BenchStore, file: Path) -> None:
    result = make_result(make_cell(), make_figure("ttft_s", (0.2, 0.3)), repeats=make_repeats(step_s=0.020013))
    run = make_run(result, make_result(make_cell(2048)), engine="vllm", flags=("--a", "b"), machine="spark")
    number = store.write(run)
    kept = read_bench_run(file, number)
    assert kept.run == msgspec.structs.replace(run, id=number)
    assert kept.asked == (make_cell(), make_cell(2048))


def test_times_of_tokens_are_kept_to_the_microsecond(store: BenchStore, file: Path) -> None:
    run = store.write(make_run(make_result(repeats=make_repeats(writes=(TokensRead(0.12345678901, 1, 1),)))))
    request = read_bench_run(file, run).run.cells[0].repeats[0].requests[0]
    assert request.writes == (TokensRead(0.123457, 1, 1),)


def test_the_list_tells_what_was_measured_of_what_was_asked(store: BenchStore, file: Path) -> None:
    store.write(make_run(make_result(), engine="sglang", engine_version="0.5.16"))
    run = store.begin(make_run(is_whole=False), (make_cell(), make_cell(2048)))
    store.write_cell(run, 1, make_result(make_cell(2048)))
    last, first = read_bench_lines(file)
    assert (last.id, last.cells, last.asked, last.is_whole) == (2, 1, 2, False)
    assert (first.id, first.cells, first.asked, first.engine_version) == (1, 1, 1, "0.5.16")
    assert [line.id for line in read_bench_lines(file, most=1)] == [2]


def test_without_a_file_there_are_no_runs(file: Path) -> None:
    assert read_bench_lines(file) == []
    with fails(WrongUse, "there is no benchmark run 7", "stoker bench list"):
        read_bench_run(file, 7)


def test_an_interrupted_run_is_unfinished_until_it_is_finished(store: BenchStore, file: Path) -> None:
    asked = (make_cell(), make_cell(2048))
    run = store.begin(make_run(is_whole=False, took_s=None), asked)
    assert read_unfinished(file) == [run]
    store.write_cell(run, 1, make_result(make_cell(2048), is_whole=False))
    assert read_bench_run(file, run).missing == asked
    store.write_cell(run, 1, make_result(make_cell(2048)))
    store.write_cell(run, 0, make_result())
    store.finish(run, make_run(took_s=9.0), asked)
    kept = read_bench_run(file, run)
    assert [result.cell for result in kept.run.cells] == list(asked)
    assert (kept.run.took_s, kept.missing, read_unfinished(file)) == (9.0, (), [])


def test_old_requests_are_forgotten_and_their_figures_stay(file: Path) -> None:
    result = make_result(make_cell(), make_figure("ttft_s", (0.2, 0.3)), repeats=make_repeats(tokens=200))
    with closing(BenchStore(file, most_requests_bytes=20_000)) as store:
        numbers = [store.write(make_run(result)) for _ in range(20)]
    kept = [read_bench_run(file, number).run.cells[0] for number in numbers]
    has_requests = [bool(one.repeats) for one in kept]
    assert has_requests == sorted(has_requests)
    assert not has_requests[0]
    assert has_requests[-1]
    assert all(one.figures == result.figures for one in kept)


def test_the_newest_requests_stay_however_large_they_are(file: Path) -> None:
    with closing(BenchStore(file, most_requests_bytes=1)) as store:
        first, last = (store.write(make_run(make_result(repeats=make_repeats()))) for _ in range(2))
    assert not read_bench_run(file, first).run.cells[0].repeats
    assert read_bench_run(file, last).run.cells[0].repeats
    without = read_bench_run(file, last, with_requests=False).run.cells[0]
    assert without == msgspec.structs.replace(read_bench_run(file, last).run.cells[0], repeats=())


def test_a_token_takes_few_bytes(store: BenchStore, file: Path) -> None:
    store.write(make_run(make_result(repeats=make_repeats(count=10, concurrency=8, tokens=128, step_s=0.0203771))))
    with closing(sqlite3.connect(file)) as database:
        (size,) = database.execute("SELECT sum(length(requests)) FROM cells").fetchone()
    assert size < 10 * 8 * 128 * 10


def test_numbers_are_not_given_twice(store: BenchStore, file: Path) -> None:
    first = store.write(make_run())
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.execute("DELETE FROM runs")
    assert store.write(make_run()) > first


def test_a_killed_bench_never_loses_a_cell_that_was_kept(file: Path) -> None:
    program = str(Path(__file__).with_name("bench_writer.py"))
    for run in (1, 2):
        with subprocess.Popen((sys.executable, program, str(file)), stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            for _ in range(40):
                child.stdout.readline()
            child.send_signal(signal.SIGKILL)
            written = 40 + len(child.stdout.read().split("\n")[:-1])
        kept = read_bench_run(file, run)
        assert len(kept.run.cells) in (written, written + 1)
        assert [result.cell for result in kept.run.cells] == list(kept.asked[: len(kept.run.cells)])
        assert len(kept.missing) == 1000 - len(kept.run.cells)


def test_a_full_disk_is_told_and_what_was_kept_stays_readable(tmp_path: Path) -> None:
    printed = run_on_a_small_disk(tmp_path, 1, SMALL_DISK, "full")
    assert "next: free some disk space" in printed
    assert "all cells that were kept are there" in printed


def test_a_file_of_a_newer_stoker_is_left_alone(file: Path) -> None:
    BenchStore(file).close()
    with closing(sqlite3.connect(file)) as database:
        database.execute(f"PRAGMA user_version = {len(BENCH) + 1}")
    with fails(StokerError, "was written by a newer Stoker", "upgrade Stoker"):
        BenchStore(file)


@pytest.mark.parametrize(
    "spoil",
    [
        "UPDATE cells SET saved = x'00'", "UPDATE cells SET requests = x'789c030000000001'", "UPDATE runs SET saved = '{}'",
        "UPDATE runs SET asked = '[1]'",
    ],
)  # fmt: skip
def test_a_spoiled_row_is_told(store: BenchStore, file: Path, spoil: str) -> None:
    run = store.write(make_run(make_result(repeats=make_repeats())))
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.execute(spoil)
    with fails(StokerError, "cannot be used", "move it away"):
        read_bench_run(file, run)


def test_a_file_that_is_no_database_is_told(file: Path) -> None:
    file.write_text("this is not a database, however long it may be" * 50)
    with fails(StokerError, "cannot be used", "not a database"):
        BenchStore(file)
    with fails(StokerError, "cannot be used"):
        read_bench_lines(file)
