"""The runs that others published: each with its source, and the tables of the reports as they stand there."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from stoker.bench.formats.figures import find_figure
from stoker.bench.published import FOLDER, load_published
from stoker.records import BenchRun

ANSWERS = tomllib.loads((Path(__file__).parents[2] / "docs" / "answers.toml").read_text())


def figure(run: BenchRun, place: int, name: str) -> float:
    found = find_figure(run.cells[place], name)
    assert found is not None
    return found.median


def test_every_cell_belongs_to_a_run_and_every_run_has_cells() -> None:
    rows = (FOLDER / "cells.csv").read_text().splitlines()[1:]
    assert {row.split(",")[0] for row in rows} == set(load_published())
    assert sum(len(run.cells) for run in load_published().values()) == len(rows)


def test_no_cell_is_told_twice_and_each_tells_something() -> None:
    for run in load_published().values():
        assert len({result.cell for result in run.cells}) == len(run.cells)
        assert all(result.figures for result in run.cells)


def test_every_run_names_its_source() -> None:
    runs = load_published()
    own = {name for name in runs if name.startswith("stoker-demo-")}
    assert all("From: " in run.note and "https://" in run.note for name, run in runs.items() if name not in own)
    assert all(runs[name].note.endswith("From: SGLang and vLLM on a GPU, docs/measured/gpu.md") for name in own)


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("qwen3.6-27b-fp8-ngram", "Two boxes side by side: SGLang FP8 and vLLM NVFP4"),
        ("gemma4-mtp-n4", "Reality check of GB10: Gemma 4 with MTP"),
        ("mistral-small-4-eagle", "Self-hosting Mistral Small 4 with SGLang on a DGX Spark"),
    ],
)
def test_the_reports_that_this_was_made_from_are_named_as_docs_answers_names_them(name: str, title: str) -> None:
    (source,) = (report["source"] for report in ANSWERS["report"] if report["title"] == title)
    assert load_published()[name].note.endswith(f"From: {title}, {source}")


def test_the_two_boxes_side_by_side_are_there_as_their_table_tells() -> None:
    ngram, mtp = (load_published()[name] for name in ("qwen3.6-27b-fp8-ngram", "qwen3.6-27b-nvfp4-mtp"))
    assert [result.cell for result in ngram.cells] == [result.cell for result in mtp.cells]
    assert [figure(ngram, place, "mean_total_decode_tps") for place in range(8)] == [
        12.7, 43.1, 13.4, 35.3, 12.2, 19.4, 12.8, 17.2,
    ]  # fmt: skip
    assert [figure(mtp, place, "mean_ttft_s") for place in range(8)] == [
        0.76, 9.422, 1.004, 7.398, 1.715, 11.322, 2.371, 16.073,
    ]  # fmt: skip
    assert all(result.cell.new_tokens == 128 for result in mtp.cells)


def test_the_sweep_of_draft_tokens_has_its_best_at_four() -> None:
    sweep = {count: load_published()[f"gemma4-mtp-n{count}"] for count in range(2, 7)}
    rates = {count: figure(run, 0, "mean_request_decode_tps") for count, run in sweep.items()}
    assert rates == {2: 67.5, 3: 71.2, 4: 80.0, 5: 76.9, 6: 72.2}
    seen = sweep[4].cells[0].speculation
    assert seen is not None
    assert seen.accept_rate == 0.76
    # Told there as conditional on the position before: 91, 90, 89 and 85 %.
    assert seen.accept_rate_by_position == pytest.approx(
        (0.91, 0.91 * 0.9, 0.91 * 0.9 * 0.89, 0.91 * 0.9 * 0.89 * 0.85), abs=0.001
    )


def test_what_was_measured_on_a_gpu_says_how_it_drafted() -> None:
    chain, tree = (load_published()[f"stoker-demo-{name}-h100"] for name in ("vllm-eagle3", "sglang-eagle-tree"))
    assert [result.cell.content for result in chain.cells] == ["code", "prose"]
    assert figure(chain, 0, "request_decode_tps") > 4 * figure(
        load_published()["stoker-demo-vllm-ngram-h100"], 0, "request_decode_tps"
    )
    seen = [result.speculation for result in (*chain.cells, *tree.cells)]
    assert [one and one.accept_length for one in seen] == [3.56, 4.57, 4.09, 4.36]
    assert [one and one.accept_rate for one in seen] == [0.64, 0.893, 0.259, 0.28]


def test_what_nobody_told_is_unknown() -> None:
    for run in load_published().values():
        assert (run.took_s, run.began_at, run.seed) == (None, None, None)
        assert all(result.asked is None and not figure.values for result in run.cells for figure in result.figures)
    assert load_published()["mistral-small-4-eagle"].cells[0].cell.new_tokens is None
