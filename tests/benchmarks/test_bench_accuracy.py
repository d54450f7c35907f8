"""The comparison of benchmark tools: our adapter gives what it asks for, and the truth is worked out right."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.bench_accuracy.lanes import Lane, bound_to, plan_lanes
from benchmarks.bench_accuracy.measuring import run_tool
from benchmarks.bench_accuracy.nearest import nearest
from benchmarks.bench_accuracy.pages import pages
from benchmarks.bench_accuracy.rows import Row, keep_rows, read_rows
from benchmarks.bench_accuracy.scenes import SCENES, Scene, truth_of
from benchmarks.bench_accuracy.serving import call, truth_server
from benchmarks.bench_accuracy.tools import TOOLS, Job

ADAPTER = Path(__file__).parents[2] / "benchmarks" / "bench_accuracy" / "adapter.py"
SCENE = Scene("two at once", {}, concurrency=2, requests=4, tokens=5)
LOG = [
    {
        "prompt_tokens": 100, "received_s": begin, "tokens": 5, "chunks": 4, "first_tokens": 2, "first_s": begin + 0.2,
        "last_s": begin + 0.5, "ended_s": begin + 0.6, "late_s": 0.001,
    }
    for begin in (0.0, 0.1, 1.0, 1.1)
]  # fmt: skip


def test_the_truth_is_that_of_the_last_requests_of_the_right_length() -> None:
    warm_up = {**LOG[0], "received_s": -5.0, "first_s": -1.0}
    truth = truth_of([warm_up, {**LOG[0], "tokens": 4}, *LOG], SCENE)
    assert truth is not None
    assert truth.ttft_ms == pytest.approx(200)
    assert truth.itl_ms == pytest.approx(100)
    assert truth.prefill_tps == pytest.approx(500)
    assert truth.tps_decode == pytest.approx(6 / 0.4)
    assert truth.tps_e2e == pytest.approx(20 / 1.6)
    assert truth.busy_s == pytest.approx(6.7)
    assert truth_of([], SCENE) is None


def test_our_adapter_leaves_its_figures(tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    with truth_server() as url:
        call(f"{url}/truth/schedule", {"ttft_ms": 20.0, "step_ms": 2.0, "burst": 3, "drafts": 3})
        job = Job(url, "truth/bytes", "", "", 128, 13, 2, 4, tmp_path)
        subprocess.run([sys.executable, str(ADAPTER), *TOOLS["stoker"].words(job)], check=True, timeout=120)
        log = call(f"{url}/truth/requests")
    said = json.loads(out.read_text())
    assert said.keys() == {
        "tps_kind", "ttft_ms", "itl_ms", "chunk_ms", "tps_request", "prefill_tps", "tps_total", "acceptance",
    }  # fmt: skip
    assert said["acceptance"] == pytest.approx(2 / 3)
    assert sum(row["tokens"] == 13 for row in log) >= 4 + 2
    assert {row["prompt_tokens"] for row in log if row["tokens"] == 13} == {128}


def test_a_page_has_a_row_a_scene_and_a_column_a_tool() -> None:
    truth = truth_of(LOG, SCENE)
    said = {"ttft_ms": 201.0, "itl_ms": 101.0, "prefill_tps": 495.0, "tps_total": 15.0}
    rows = [Row(SCENE, "stoker", truth, said, 0.5, 8.0, 0.1), Row(SCENE, "guidellm", truth, {}, 9.0, 20.0, 0.2)]
    text = pages(rows, ["stoker", "guidellm"])
    assert "| two at once | +1.00 | - |" in text
    assert "| two at once | +1.000 | - |" in text
    assert "| two at once | -1.00 | - |" in text
    assert "load average 0.1 to 0.2" in text


def test_scenes_have_names_of_their_own() -> None:
    assert len({scene.name for scene in SCENES}) == len(SCENES) == 20


def test_a_page_of_repeats_has_medians_their_spread_and_who_is_best() -> None:
    truth = truth_of(LOG, SCENE)
    rows = [
        Row(SCENE, tool, truth, {"ttft_ms": 200 + off_ms, "itl_ms": 100.0}, 0.5, 8.0, 0.1, "a machine")
        for tool, offs_ms in {"stoker": (-1.0, 2.0, 3.0), "guidellm": (4.0, -5.0, 6.0)}.items()
        for off_ms in offs_ms
    ]
    text = pages(rows, ["stoker", "guidellm"])
    assert "| two at once | +2.00 (-1.00 to +3.00) | +4.00 (-5.00 to +6.00) | stoker |" in text
    assert "| Time to the first token: error in ms | 1 | 0 | 0 |" in text
    assert "| Time per token: error in % | 0 | 1 | 0 |" in text
    assert text.startswith("a machine; load average 0.1 to 0.1. Runs a cell: 3.")


@pytest.mark.parametrize(
    ("errors", "names"),
    [
        ({"a": [1.0, -1.2], "b": [1.3, 1.9]}, ["a"]),
        ({"a": [1.0, -1.2], "b": [1.1, 9.0]}, ["a", "b"]),
        ({"a": [3.0, 3.0], "b": [-1.0, 2.0], "c": []}, ["b"]),
        ({"a": []}, []),
    ],
)
def test_one_is_nearest_where_its_worst_repeat_is_better_than_any_others_best(
    errors: dict[str, list[float]], names: list[str]
) -> None:
    assert nearest(errors) == names


def test_rows_of_several_runs_are_kept_in_one_file(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    rows = [Row(SCENES[2], "stoker", truth_of(LOG, SCENE), {"ttft_ms": 1.5}, 0.5, 8.0, 0.1, "a machine")]
    assert read_rows(file) == []
    keep_rows(file, rows)
    keep_rows(file, [Row(SCENE, "aiperf", None, {}, 9.0, 20.0, 0.2)])
    assert read_rows(file) == [*rows, Row(SCENE, "aiperf", None, {}, 9.0, 20.0, 0.2)]


def test_lanes_share_whole_cores_out_and_one_lane_is_bound_to_none() -> None:
    cores = [{0, 4}, {1, 5}, {2, 6}, {3, 7}]
    assert plan_lanes(2, cores) == [Lane({0, 4}, {1, 5}), Lane({2, 6}, {3, 7})]
    assert plan_lanes(1, cores) == [Lane()]
    with pytest.raises(SystemExit, match="6 cores"):
        plan_lanes(3, cores)


def test_what_a_lane_starts_stays_on_its_processors() -> None:
    before = os.sched_getaffinity(0)
    with bound_to({min(before)}):
        words = [sys.executable, "-c", "import os; print(*os.sched_getaffinity(0))"]
        assert subprocess.check_output(words).split() == [str(min(before)).encode()]
    assert os.sched_getaffinity(0) == before


def test_a_tools_cost_is_its_own_and_its_childrens(tmp_path: Path) -> None:
    burn = "import time\nwhile time.process_time() < 0.2: pass"
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}]); print('done')"
    subprocess.run([sys.executable, "-c", burn.replace("0.2", "1.5")], check=True)
    cost = run_tool([sys.executable, "-c", nested], tmp_path / "log.txt")
    assert 0.2 <= cost.cpu_s < 1.5
    assert (tmp_path / "log.txt").read_text() == "done\n"


def test_kept_rows_make_a_table_in_the_order_of_the_scenes(tmp_path: Path) -> None:
    kept, page = tmp_path / "rows.jsonl", tmp_path / "page.md"
    keep_rows(kept, [Row(one, "stoker", truth_of(LOG, SCENE), {"ttft_ms": 201.0}, 0.5, 8.0, 0.1) for one in SCENES[1::-1]])
    words = ["--rows", str(kept), "--repeats", "0", "--write", str(page)]
    command = [sys.executable, "-m", "benchmarks.bench_accuracy", *words]
    subprocess.run(command, check=True, cwd=ADAPTER.parents[2], stdout=subprocess.DEVNULL)
    assert page.read_text().index(SCENES[0].name) < page.read_text().index(SCENES[1].name)
