"""Real llama.cpp, measured, interrupted and killed: what was measured is kept, taken up again, compared and exported."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from home import Home
from stoker.bench.formats.read import read_results

WORDS = ("bench", "--pp", "32", "64", "--tg", "8", "--concurrency", "1", "2", "--runs", "2")
CELLS = 4


def stop_after_first_cell(home: Home, how: signal.Signals) -> int:
    """Measures until the first cell is told, then sends a signal; returns the exit code."""
    argv = [sys.executable, "-u", "-m", "stoker", *WORDS]
    with subprocess.Popen(argv, env=home.environment, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if line.startswith("  pp32"):
                running.send_signal(how)
                break
        running.stdout.read()
        return running.wait()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_was_stopped_is_taken_up_where_it_ended(home: Home, how: signal.Signals) -> None:
    home.run("up")
    code = stop_after_first_cell(home, how)
    assert code == (1 if how is signal.SIGINT else -signal.SIGKILL)
    (line,) = home.json("bench", "list")
    assert not line["is_whole"]
    assert 1 <= line["cells"] < CELLS
    measured = home.json("bench", "show")["run"]["cells"][0]
    other = home.run("bench", "--pp", "16", "--resume", "last", code=3)
    assert "run 1 is unfinished, and asks something else" in other.stderr
    home.run("bench", "--resume", "last")
    (line,) = home.json("bench", "list")
    assert (line["id"], line["cells"], line["is_whole"]) == (1, CELLS, True)
    run = home.json("bench", "show")["run"]
    assert run["cells"][0] == measured
    assert run["subject"]["engine"] == "llamacpp"
    assert run["subject"]["plan_id"]
    assert run["subject"]["flags"]


def test_two_runs_of_the_real_engine_are_compared_and_exported(home: Home) -> None:
    home.run("up")
    for _ in range(2):
        home.run(*WORDS)
    comparison = home.json("bench", "compare", "1", "2")
    assert comparison["differences"] == []
    assert len(comparison["cells"]) == CELLS
    names = {figure["name"] for cell in comparison["cells"] for figure in cell["figures"]}
    assert {"ttft_s", "prefill_tps", "total_e2e_tps"} <= names
    told = json.loads(home.run("bench", "export", "1").stdout)["benchmarks"]
    assert [(one["prompt_size"], one["concurrency"]) for one in told] == [(32, 1), (32, 2), (64, 1), (64, 2)]
    assert [len(one["e2e_ttft"]["values"]) for one in told] == [2, 4, 2, 4]
    again = read_results(home.run("bench", "export", "1").stdout, "x")
    assert len(again.cells) == CELLS
    report = Path(home.folder / "report.html")
    home.run("bench", "report", "1", "-o", str(report))
    assert '"name":"throughput"' in report.read_text()
