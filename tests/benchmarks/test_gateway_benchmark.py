"""The gateway's benchmark measures something, and its tables say what was measured."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.gateway.cells import Cell, Turn
from benchmarks.gateway.cores import choose_cores, describe_cores, read_cores
from benchmarks.gateway.document import write_part
from benchmarks.gateway.load import Measured
from benchmarks.gateway.peers import Cores, read_entries, read_version
from benchmarks.gateway.processes import ROOT
from benchmarks.gateway.table import render


def make_turn(peer: str, cpu_s: float, p50_us: float, foreign_cores: float = 0.0) -> Turn:
    """Returns a peer's turn of one cell of a thousand chunks."""
    times = {"p50": p50_us, "p90": p50_us, "p99": p50_us, "max": p50_us}
    measured = Measured(
        good=10, errors={}, unfinished=0, chunks=1000, wall_s=1.0, stretch=1.0, transit_us=times, ttft_us=times, cpu_s=cpu_s,
        rss_peak_bytes=2**20, client_cpu_s=0.1,
    )  # fmt: skip
    return Turn(peer, cells={"256": Cell(measured, foreign_cores, {})})


def cells_of(text: str, peer: str) -> list[str]:
    """Returns a row's cells."""
    row = next(line for line in text.splitlines() if line.startswith(f"| {peer} |"))
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_a_row_tells_what_is_added_the_ratio_and_the_spread() -> None:
    turns = [make_turn("direct", 0, 50), make_turn("nginx", 0.010, 80)]
    turns += [make_turn("stoker", cpu_s, 70) for cpu_s in (0.015, 0.020, 0.030)]
    row = cells_of(render(turns, ["256"], 0.1), "stoker")
    assert row[1] == "20"
    assert row[5:7] == ["20.0 (15.0 to 30.0)", "2.00"]
    assert row[-1] == "3"


def test_a_disturbed_repeat_does_not_count_unless_there_is_no_other() -> None:
    turns = [make_turn("stoker", 0.020, 70), make_turn("stoker", 0.090, 900, foreign_cores=1.5)]
    assert cells_of(render(turns, ["256"], 0.1), "stoker")[5] == "20.0"
    assert cells_of(render(turns[1:], ["256"], 0.1), "stoker")[5] == "90.0"


def test_a_turn_that_failed_is_told() -> None:
    assert "nginx failed: it broke" in render([Turn("nginx", failed="it broke")], ["256"], 0.1)


def test_a_part_of_a_document_is_replaced_and_the_rest_stays(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text("# Title\n\nwords\n")
    write_part(file, "speed", "old")
    file.write_text(file.read_text() + "\nmore words\n")
    write_part(file, "speed", "new")
    assert file.read_text().count("speed") == 2
    assert "old" not in file.read_text()
    assert [word in file.read_text() for word in ("words", "new", "more words")] == [True] * 3


def test_the_peers_have_programs_and_versions() -> None:
    entries = read_entries()
    assert {"nginx", "sglang-router", "vllm-router", "litellm"} <= set(entries)
    assert all(read_version(entry)[0].isdigit() for entry in entries.values() if not entry.version)


def test_stoker_is_measured_beside_the_engine_itself() -> None:
    words = ["--peers", "direct", "stoker", "--cells", "1", "--repeats", "1", "--tries", "1", "--quiet-s", "0"]
    argv = [sys.executable, "-m", "benchmarks.gateway", *words]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=300, check=True)
    row = cells_of(done.stdout, "stoker")
    errors, unfinished = row[-4:-2]
    assert (errors, unfinished) == ("0", "0")
    assert float(row[5]) > 0


def test_the_gateway_has_a_core_for_itself_and_the_others_have_one_each_where_there_are_enough() -> None:
    assert choose_cores(None, [0]) == Cores()
    assert choose_cores(None, [0, 1]) == Cores(engine=0, gateway=1, client=0)
    assert choose_cores(None, [0, 2, 4, 6]) == Cores(engine=2, gateway=4, client=6)
    assert choose_cores([5, 1, 3], [0]) == Cores(engine=5, gateway=1, client=3)


def test_the_table_says_who_shares_a_core() -> None:
    assert "no number means much" in describe_cores(Cores())
    assert "engine and client together" in describe_cores(Cores(0, 1, 0))
    assert "each alone" in describe_cores(Cores(0, 1, 2))


def test_two_threads_of_a_core_are_one_core(tmp_path: Path) -> None:
    usable = sorted(os.sched_getaffinity(0))
    for number in usable:
        folder = tmp_path / f"cpu{number}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{usable[0]}-{usable[-1]},9999\n")
    assert read_cores(tmp_path) == usable[:1]
    assert read_cores(tmp_path / "nothing") == usable
