"""A run that is measured now: kept cell by cell, taken up again where it ended, and never lost with a disk."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench_samples import make_cell, make_figure, make_repeats, make_result, make_run
from real_tools import run_on_a_small_disk
from stoker.bench.formats.read import read_results
from stoker.config import Paths
from stoker.errors import Refused, WrongUse
from stoker.flows.bench_keeping import Keeper, question_of, resume, words_of_unfinished
from stoker.records import BenchCell, BenchRun, CellResult
from stoker.store.bench import read_bench_lines, read_bench_run
from support import fails

CELLS = (make_cell(512), make_cell(2048), make_cell(512, concurrency=8))


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(state=tmp_path / "state", config=tmp_path / "stoker.toml")


WORDS = ("bench", "coder", "--pp", "512", "2048")


def begun(**changes: Any) -> BenchRun:
    return make_run(is_whole=False, took_s=None, words=WORDS, **changes)


def ended(**changes: Any) -> BenchRun:
    return make_run(words=WORDS, **changes)


def measured(cell: BenchCell, **changes: Any) -> CellResult:
    return make_result(cell, make_figure("ttft_s", (0.2, 0.3, 0.4), "request"), repeats=make_repeats(3), **changes)


def interrupt(paths: Paths, *cells: BenchCell, **changes: Any) -> None:
    """Measures some cells of a run, then dies without a word."""
    keeper = Keeper(paths, begun(**changes), CELLS)
    for cell in cells:
        keeper.keep(measured(cell))


def test_a_whole_run_is_kept_with_its_number(paths: Paths) -> None:
    keeper = Keeper(paths, begun(), CELLS)
    for cell in CELLS:
        keeper.keep(measured(cell))
    kept = keeper.close(ended(took_s=12.0, engine="vllm"))
    assert (kept.run.id, kept.run.is_whole, kept.left_at, kept.warnings) == (1, True, None, ())
    assert read_bench_run(paths.bench_database, 1).run == kept.run


def test_a_run_that_measured_nothing_leaves_no_trace(paths: Paths) -> None:
    Keeper(paths, begun(), CELLS)
    Keeper(paths, begun(), CELLS).close(ended(is_whole=False))
    assert read_bench_lines(paths.bench_database) == []


def test_what_was_measured_is_there_before_the_run_ends(paths: Paths) -> None:
    interrupt(paths, CELLS[0])
    (line,) = read_bench_lines(paths.bench_database)
    assert (line.cells, line.asked, line.is_whole) == (1, 3, False)


def test_a_resumed_run_measures_what_is_missing_and_becomes_one_whole(paths: Paths) -> None:
    interrupt(paths, CELLS[1])
    keeper = resume(paths, begun(), CELLS)
    assert keeper.missing == (CELLS[0], CELLS[2])
    for cell in keeper.missing:
        keeper.keep(measured(cell))
    run = keeper.close(ended(took_s=5.0, began_at=1.9e9)).run
    assert (run.id, run.is_whole, run.began_at) == (1, True, 1.79e9)
    assert run.took_s == pytest.approx(5.0 + 3.0)  # three repeats of a second each, before it was interrupted
    assert [one.cell for one in run.cells] == list(CELLS)
    assert read_bench_run(paths.bench_database, 1).missing == ()


def test_a_cell_that_was_interrupted_is_measured_again(paths: Paths) -> None:
    keeper = Keeper(paths, begun(), CELLS)
    keeper.keep(measured(CELLS[0], is_whole=False))
    kept = keeper.close(ended(is_whole=False))
    assert len(kept.run.cells) == 1  # shown and kept all the same
    assert resume(paths, begun(), CELLS).missing == CELLS


def test_the_last_run_that_asks_the_same_is_taken_up(paths: Paths) -> None:
    interrupt(paths, CELLS[0])
    interrupt(paths, CELLS[1], model="another")
    assert resume(paths, begun(), CELLS).missing == CELLS[1:]
    assert resume(paths, begun(model="another"), CELLS, "2").missing == (CELLS[0], CELLS[2])


@pytest.mark.parametrize(
    ("run", "cells", "why"),
    [
        (begun(model="another"), CELLS, "model was small-1, and is another"),
        (begun(plan_id="p2"), CELLS, "plan was p1, and is p2"),
        (begun(plan_id="p1"), CELLS[:2], "it asks 3 cells, of which 2 are asked now"),
        (msgspec.structs.replace(begun(), tool_version="9"), CELLS, "it was measured by stoker 0.1.0"),
        (
            msgspec.structs.replace(begun(), words=("bench", "--runs", "9")),
            CELLS,
            "its words were bench coder --pp 512 2048",
        ),
    ],
)
def test_a_run_that_asked_something_else_is_not_gone_on_with(
    paths: Paths, run: BenchRun, cells: tuple[BenchCell, ...], why: str
) -> None:
    interrupt(paths, CELLS[0], plan_id="p1")
    with fails(Refused, "run 1 is unfinished, and asks something else", why):
        resume(paths, run, cells)
    with fails(Refused, why):
        resume(paths, run, cells, "1")


def test_only_unfinished_runs_can_be_taken_up(paths: Paths) -> None:
    with fails(WrongUse, "there is no unfinished run"):
        resume(paths, begun(), CELLS)
    interrupt(paths, CELLS[0])
    for name in ("7", "coder"):
        with fails(WrongUse, f"{name} is no unfinished run", "unfinished are: 1"):
            resume(paths, begun(), CELLS, name)


ELSEWHERE = """
import sys
from pathlib import Path
from test_keeping import CELLS, Keeper, Paths, begun, measured
keeper = Keeper(Paths(state=Path(sys.argv[1]), config=Path("stoker.toml")), begun(), CELLS)
keeper.keep(measured(CELLS[0]))
print("kept", flush=True)
input()
"""
CLAIMS = """
import sys
from pathlib import Path
from stoker.flows.bench_claim import Claim
from stoker.config import Paths
print(Claim(Paths(state=Path(sys.argv[1]), config=Path("stoker.toml"))).take(1))
"""


@contextmanager
def measured_elsewhere(paths: Paths) -> Iterator[None]:
    """Has another process measure a run, of which one cell is kept; it is killed at the end."""
    here = Path(__file__).parent
    words = [sys.executable, "-c", ELSEWHERE, str(paths.state)]
    environment = {**os.environ, "PYTHONPATH": str(here.parent)}
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=here, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "kept\n"
        yield
        process.kill()


def test_a_run_that_is_being_measured_is_not_taken_up_by_another(paths: Paths) -> None:
    interrupt(paths, CELLS[1])
    with measured_elsewhere(paths):
        assert resume(paths, begun(), CELLS).missing == (CELLS[0], CELLS[2]), "the other one, which nobody measures"
        with fails(Refused, "run 2 is being measured by another process", "wait for its end"):
            resume(paths, begun(), CELLS, "2")
    assert resume(paths, begun(), CELLS, "2").missing == CELLS[1:], "its claim ended with its process"


def test_a_run_is_claimed_from_its_first_cell_to_its_end(paths: Paths) -> None:
    keeper = Keeper(paths, begun(), CELLS)
    keeper.keep(measured(CELLS[0]))
    assert may_claim(paths) == "False\n"
    keeper.close(ended(is_whole=False))
    assert may_claim(paths) == "True\n"


def may_claim(paths: Paths) -> str:
    """Has another process try to claim the first run."""
    words = [sys.executable, "-c", CLAIMS, str(paths.state)]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def test_words_ask_the_same_in_any_order_and_however_they_are_printed() -> None:
    one = question_of(("bench", "coder", "--pp", "512", "--json"))
    assert one == question_of(("bench", "measure", "--resume", "last", "--pp", "512", "coder"))
    assert one != question_of(("bench", "coder", "--pp", "1024"))


@pytest.mark.parametrize("words", [("bench", "coder", "--pp", "512"), ("bench", "measure", "coder", "--pp", "512")])
def test_an_unfinished_run_tells_what_it_was_asked_with(paths: Paths, words: tuple[str, ...]) -> None:
    keeper = Keeper(paths, msgspec.structs.replace(begun(), words=words), CELLS)
    keeper.keep(measured(CELLS[0]))
    keeper.close(msgspec.structs.replace(ended(is_whole=False), words=words))
    assert words_of_unfinished(paths, "last") == words_of_unfinished(paths, "1") == ("coder", "--pp", "512")


def test_a_subject_that_changed_between_the_parts_is_noted(paths: Paths) -> None:
    keeper = Keeper(paths, begun(), CELLS)
    keeper.keep(measured(CELLS[0]))
    keeper.close(ended(is_whole=False, engine_version="0.26.0"))
    keeper = resume(paths, begun(), CELLS)
    for cell in keeper.missing:
        keeper.keep(measured(cell))
    assert keeper.close(ended(engine_version="0.27.0")).run.note == "engine's version was 0.26.0 in its first part"


def test_a_database_that_is_broken_leaves_the_run_as_a_file(
    paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    paths.state.mkdir()
    paths.bench_database.write_text("no database " * 1000)
    keeper = Keeper(paths, begun(), CELLS)
    for cell in CELLS:
        keeper.keep(measured(cell))
    kept = keeper.close(ended(took_s=1.0))
    assert kept.left_at is not None
    assert kept.left_at.parent == tmp_path
    assert str(kept.left_at) in kept.warnings[0]
    assert "not a database" in kept.warnings[0]
    again = read_results(kept.left_at.read_text(), "x")
    assert again.cells == kept.run.cells
    assert again.is_whole


def test_a_database_that_breaks_half_way_loses_nothing(
    paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    keeper = Keeper(paths, begun(), CELLS)
    keeper.keep(measured(CELLS[0]))
    with closing(sqlite3.connect(paths.bench_database, isolation_level=None)) as database:
        database.execute("DROP TABLE cells")
    for cell in CELLS[1:]:
        keeper.keep(measured(cell))
    kept = keeper.close(ended(took_s=1.0))
    assert kept.left_at is not None
    assert [one["cell"] for one in json.loads(kept.left_at.read_text())["run"]["cells"]] == [
        json.loads(msgspec.json.encode(cell)) for cell in CELLS
    ]


def test_a_run_on_a_full_disk_is_shown_and_left_where_there_is_room(tmp_path: Path) -> None:
    printed = run_on_a_small_disk(tmp_path, 1, Path(__file__).with_name("keeper_on_full_disk.py"), "full")
    told = json.loads(printed)
    assert told["cells"] == told["asked"]
    assert "full" in told["warnings"][0]
    assert told["left_at"] in told["warnings"][0]
    assert told["cells_left"] == told["asked"]
