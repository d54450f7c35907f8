"""The comparison of benchmark tools: our adapter gives what it asks for, and the truth is worked out right."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.bench_accuracy.pages import Row, pages
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
    assert "| two at once | +1.0 | - |" in text
    assert "| two at once | +1.00 | - |" in text
    assert "| two at once | -1.0 | - |" in text
    assert "load average 0.1 to 0.2" in text


def test_scenes_have_names_of_their_own() -> None:
    assert len({scene.name for scene in SCENES}) == len(SCENES) == 20
