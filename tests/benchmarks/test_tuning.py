"""Tuning beside a sweep: what its rows say, how they are kept, and that it leaves nothing behind where it is cut off."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import msgspec
import psutil
import pytest
from benchmarks.tuning import Case, cases_of, read_rows, share_cores
from benchmarks.tuning_fleet import Sweep, is_told, not_slower
from benchmarks.tuning_page import BY_HAND, Figure, Row, bands, differences, render

from stoker.records import Band, Way

ROOT = Path(__file__).parents[2]
LIMIT_S = 120.0


def make_row(seed: int = 1, best: str = "draft 4", turns: tuple[tuple[float, float], ...] = (), starts: int = 5) -> Row:
    """Returns a row whose tuning chose `draft 3`, with at most 8 starts for half of the sweep's 16."""
    figures = (
        Figure("draft 3", 100.0, None, 104.0),
        Figure("draft 4", None, Band(98.0, 90.0, 110.0), 105.0),
        Figure("draft 5", None, Band(98.0, 90.0, 110.0), 80.0),
        Figure("ngram", None, None, 70.0),
    )
    return Row(
        "llama.cpp", "code", seed, "draft 3", best, turns, starts, 16, 30.0, 90.0, why="why", figures=figures,
        machine="x86_64", day="2026-11-23", version="1", measure_s=5.0,
    )  # fmt: skip


def write_rows(file: Path, *rows: Row) -> None:
    """Writes rows as the benchmark keeps them."""
    file.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))


def run(*words: str) -> list[str]:
    """Returns the command line of the benchmark."""
    return [sys.executable, "-m", "benchmarks.tuning", *words]


@pytest.mark.parametrize(
    ("turns", "is_good"),
    [
        (((98.0, 100.0), (92.0, 100.0), (103.0, 100.0)), True),
        (((96.0, 100.0), (96.0, 100.0), (96.0, 100.0)), False),
        ((), False),
    ],
    ids=["the mean of the rounds is near", "the mean is not", "no round ended"],
)
def test_a_choice_is_judged_by_its_rounds_alone(turns: tuple[tuple[float, float], ...], is_good: bool) -> None:
    assert make_row(turns=turns).is_good is is_good


def test_a_choice_that_is_the_sweeps_best_is_good_with_half_of_the_starts_and_not_with_more() -> None:
    assert make_row(best="draft 3", starts=8).is_good
    assert not make_row(best="draft 3", starts=9).is_good


def test_the_page_says_how_much_of_a_figure_is_the_starts_own() -> None:
    rows = [make_row(2, turns=((98.0, 100.0),)), make_row(1, best="draft 3")]
    assert differences(rows) == pytest.approx([0.04, 0.04])
    assert bands(rows) == (2, 2, 4)
    page = render(rows, ["llama.cpp prose 2"])
    assert "- llama.cpp: **2 of 2** (2026-11-23, Stoker 1, x86_64 a row; each way is measured to 3 % or for 5 s)\n" in page
    assert "differed by 4.0% (the middle of 2;" in page
    assert "did not end: llama.cpp prose 2." in page
    assert page.index("| 1 | draft 3 | draft 3 | the same |") < page.index("| 2 | draft 3 | draft 4 | 2.0% |")


def test_a_band_is_as_wide_as_a_starts_luck_and_what_all_ways_had_alike_is_told_apart() -> None:
    figures = (
        Figure("off", 100.0, None, 110.0),
        Figure("draft 3", 100.0, None, 110.0),
        Figure("draft 4", None, Band(98.0, 90.0, 106.7), 108.0),  # out of its band, and within a start's luck of it
        Figure("draft 5", None, Band(98.0, 90.0, 106.7), 118.0),  # all ways were a tenth faster in that sweep
        Figure("draft 6", None, Band(98.0, 90.0, 106.7), 140.0),
    )
    row = msgspec.structs.replace(make_row(), figures=figures)
    assert bands([row]) == (1, 2, 3)
    assert bands([msgspec.structs.replace(row, counts_starts=True)]) == (0, 1, 3)
    page = render([row])
    assert "1 of 3 inside their bands" in page
    assert "from the tuning to the sweep, 2 of 3." in page


def test_each_engine_is_judged_by_its_own_rows() -> None:
    other = msgspec.structs.replace(make_row(2, turns=((90.0, 100.0),)), engine="vLLM")
    page = render([other, make_row(1, best="draft 3"), msgspec.structs.replace(other, seed=3, day="2026-11-26")])
    assert "- llama.cpp: **1 of 1** (2026-11-23," in page
    assert "- vLLM: **0 of 2** (2026-11-23 to 2026-11-26," in page


def test_how_far_it_is_behind_has_an_interval_by_the_rounds() -> None:
    row = make_row(turns=((97.0, 100.0), (98.0, 100.0), (99.0, 100.0)))
    assert row.behind == pytest.approx(0.02, abs=1e-4)
    low, high = row.behind_between or (0.0, 0.0)
    assert (low, high) == pytest.approx((-0.005, 0.044), abs=2e-3)


def swept(off: float, near: float, noise: float, rounds: int) -> dict[Way, list[float]]:
    """Returns rates of two ways, of which the second's differ from round to round by so much."""
    return {
        Way("off"): [off] * rounds,
        Way("draft", 1): [near * (1 + (noise if number % 2 else -noise)) for number in range(rounds)],
    }


@pytest.mark.parametrize(
    ("near", "noise", "rounds", "stays"),
    [(90.0, 0.3, 6, True), (90.0, 0.02, 5, True), (90.0, 0.02, 6, False), (130.0, 0.02, 6, True)],
    ids=["it may be chance", "too few rounds", "beyond chance", "it is the fastest"],
)
def test_what_is_slower_beyond_chance_is_asked_no_more(near: float, noise: float, rounds: int, stays: bool) -> None:
    rates = swept(100.0, near, noise, rounds)
    assert (Way("draft", 1) in not_slower(rates, Way("off"))) is stays
    assert Way("off") in not_slower(rates, Way("off")), "the choice always stays"


def test_what_cannot_be_faster_than_the_choice_by_as_much_as_matters_is_asked_no_more() -> None:
    rates = swept(100.0, 101.0, 0.01, 6)
    assert not_slower(rates, Way("off")) == list(rates), "the fastest stays"
    rates[Way("ngram")] = [102.0] * 6
    assert not_slower(rates, Way("off")) == [Way("off"), Way("ngram")]
    rates[Way("draft", 1)] = [88.0, 117.0] * 3
    assert not_slower(rates, Way("off")) == list(rates), "it may yet be far ahead"


@pytest.mark.parametrize(
    ("near", "noise", "rounds", "told"),
    [
        (101.0, 0.3, 24, False), (101.0, 0.01, 23, False), (101.0, 0.01, 24, True),
        (110.0, 0.3, 24, False), (110.0, 0.01, 24, True),
    ],
    ids=["may be far ahead", "too few rounds", "surely not far ahead", "may be near", "surely far ahead"],
)  # fmt: skip
def test_a_sweep_is_over_once_it_tells_whether_the_choice_is_near(
    near: float, noise: float, rounds: int, told: bool
) -> None:
    assert is_told(swept(100.0, near, noise, rounds), Way("off")) is told


def test_the_best_is_one_of_those_that_were_asked_to_the_end() -> None:
    off, near, chosen = Way("off"), Way("draft", 1), Way("ngram")
    swept = Sweep({off: [100.0] * 7, near: [130.0] * 6, chosen: [50.0] * 7}, 1.0)
    assert (swept.best, swept.turns(chosen)) == (off, ((50.0, 100.0),) * 7)
    assert swept.turns(off) == ()


def test_the_best_is_compared_in_rounds_by_which_it_is_not_the_best() -> None:
    steady, lucky = Way("off"), Way("draft", 1)
    swept = Sweep({steady: [100.0] * 4, lucky: [140.0, 90.0, 140.0, 80.0]}, 1.0)
    assert swept.best == lucky
    assert swept.turns(steady) == ((100.0, 100.0), (100.0, 90.0), (100.0, 100.0), (100.0, 80.0))


def test_what_is_kept_is_not_asked_again_and_a_line_that_was_cut_off_is(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    write_rows(file, make_row(1), make_row(2))
    file.write_bytes(file.read_bytes()[:-9])
    assert cases_of("llama.cpp", 2, read_rows(file)) == [
        Case("llama.cpp", "prose", 1), Case("llama.cpp", "code", 2), Case("llama.cpp", "prose", 2),
    ]  # fmt: skip
    assert read_rows(tmp_path / "none") == []


def test_lanes_get_cores_of_their_own_side_by_side() -> None:
    assert share_cores(range(13), 5) == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]
    assert share_cores([4, 6], 2) == [[4], [6]]
    with pytest.raises(SystemExit, match="3 lanes need as many cores"):
        share_cores([4, 6], 3)


def test_the_page_is_made_of_kept_rows_without_a_start(tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.jsonl", make_row(best="draft 3"))
    words = ("--rows", str(tmp_path / "rows.jsonl"), "--resume", "--seeds", "0", "--write", str(tmp_path / "page.md"))
    subprocess.run(run(*words), cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    page = tmp_path / "page.md"
    assert "**1 of 1**" in page.read_text()
    page.write_text(page.read_text().replace("1 of 1", "0 of 1") + f"\n{BY_HAND}\nA note.\n")
    subprocess.run(run(*words), cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    assert "**1 of 1**" in page.read_text()
    assert page.read_text().endswith("A note.\n")


def test_what_is_told_to_end_leaves_nothing_running(tmp_path: Path) -> None:
    words = ("--rows", str(tmp_path / "rows.jsonl"), "--seeds", "1", "--measure", "1")
    told = {**os.environ, "PYTHONFAULTHANDLER": "1"}
    with subprocess.Popen(run(*words), cwd=ROOT, env=told, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        below = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGTERM)
        try:
            process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            for pid in (process.pid, *(one.pid for one in below)):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGABRT)  # each says where it stands
            pytest.fail(f"it goes on: {process.stderr.read().decode()}")
    assert b"tok/s" in first
    assert process.returncode == 1
    assert not [one for one in below if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]
