"""What vLLM's and SGLang's own benchmarks save, read as runs: recorded, and bent."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import pytest

from bench_samples import make_repeats, make_result, make_run
from stoker.bench.formats.figures import find_figure
from stoker.bench.formats.own import render_own
from stoker.bench.formats.read import read_results
from stoker.errors import WrongUse
from stoker.records import BenchLoad, BenchRun, CellResult
from support import fails

RECORDED = Path(__file__).parent / "recorded"
PLAIN = json.loads((RECORDED / "vllm" / "plain.json").read_text())
DETAILED = json.loads((RECORDED / "vllm" / "detailed.json").read_text())


def read(file: str, model: str | None = None) -> BenchRun:
    return read_results((RECORDED / file).read_text(), file, model)


def median(result: CellResult, name: str) -> float:
    figure = find_figure(result, name)
    assert figure is not None
    return figure.median


def has_values(result: CellResult, name: str) -> bool:
    figure = find_figure(result, name)
    return figure is not None and bool(figure.values)


def test_vllms_saved_figures_are_read_in_our_terms() -> None:
    run = read("vllm/plain.json")
    (result,) = run.cells
    assert (run.tool, run.subject.model, run.took_s) == ("vllm bench serve", "mock/bytes", PLAIN["duration"])
    assert (result.cell.load, result.cell.new_tokens) == (BenchLoad(concurrency=1), 32)
    assert (result.asked, result.failed) == (4, 0)
    assert median(result, "ttft_s") == pytest.approx(PLAIN["median_ttft_ms"] / 1000)
    assert median(result, "p99_ttft_s") == pytest.approx(PLAIN["p99_ttft_ms"] / 1000)
    assert median(result, "mean_itl_token_s") == pytest.approx(PLAIN["mean_tpot_ms"] / 1000)
    assert median(result, "mean_itl_chunk_s") == pytest.approx(PLAIN["mean_itl_ms"] / 1000)
    assert find_figure(result, "itl_chunk_s") is None  # the file's median is of single gaps, not of requests
    assert not has_values(result, "ttft_s")
    assert run.note == "engine=vllm-nightly, note=x"


def test_its_own_counters_of_speculation_are_read() -> None:
    (result,) = read("vllm/plain.json").cells
    seen = result.speculation
    assert seen is not None
    assert (seen.draft_tokens, seen.accepted_tokens, seen.verify_steps) == (132, 80, 44)
    assert seen.accept_rate == pytest.approx(PLAIN["spec_decode_acceptance_rate"] / 100)
    assert seen.accept_length == pytest.approx(PLAIN["spec_decode_acceptance_length"])
    assert seen.accept_rate_by_position == pytest.approx(PLAIN["spec_decode_per_position_acceptance_rates"])


def test_saved_details_give_values_and_the_same_figures_as_the_tools_own() -> None:
    (result,) = read("vllm/detailed.json").cells
    ttft = find_figure(result, "ttft_s")
    assert ttft is not None
    assert ttft.values == tuple(DETAILED["ttfts"])
    per_token = find_figure(result, "itl_token_s")
    assert per_token is not None
    assert statistics.mean(per_token.values) == pytest.approx(DETAILED["mean_tpot_ms"] / 1000, rel=0.02)
    assert median(result, "e2e_s") == pytest.approx(DETAILED["median_e2el_ms"] / 1000, rel=0.01)
    assert "prompts of 256 to 258 tokens" in result.warnings


def test_appended_results_of_other_loads_are_other_cells() -> None:
    closed, poisson = read("vllm/append.json").cells
    assert closed.cell.load == BenchLoad(concurrency=2)
    assert poisson.cell.load == BenchLoad("poisson", None, 20.0)


def test_appended_results_of_the_same_load_are_its_repeats() -> None:
    run = read("sglang/plain.jsonl", "mine")
    (result,) = run.cells
    assert (run.tool, run.subject.model, result.cell.content) == ("sglang bench_serving", "mine", "random-ids")
    told = find_figure(result, "total_e2e_tps")
    assert told is not None
    assert len(told.values) == 2
    assert result.asked is None  # SGLang does not tell how many failed
    assert has_values(read("sglang/details.jsonl", "mine").cells[0], "ttft_s")


def test_a_list_of_results_is_read_as_appended_ones() -> None:
    text = json.dumps([PLAIN, PLAIN])
    (result,) = read_results(text, "x").cells
    assert result.asked == 8


def test_a_model_that_no_file_names_has_to_be_named() -> None:
    with fails(WrongUse, "it names no model", "name it with --model"):
        read("sglang/plain.jsonl")


def test_failed_requests_count_and_have_no_figures() -> None:
    bent = {**DETAILED, "failed": 2, "completed": 6, "errors": ["", "boom", "", "", "", "", "", "boom"]}
    (result,) = read_results(json.dumps(bent), "x").cells
    ttft = find_figure(result, "ttft_s")
    assert ttft is not None
    assert (len(ttft.values), result.asked, result.failed) == (6, 8, 2)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"completed": 0}, "no request of it was answered"),
        ({"completed": "many"}, "object 1.completed"),
        ({"request_rate": -1}, "object 1.request_rate"),
        ({"max_concurrency": 0}, "object 1.max_concurrency"),
        ({"itls": [[0.01]]}, "object 1, itls: it has 1 values, and ttfts 8"),
        ({"ttfts": [0.1, -0.1] * 4}, "object 1.ttfts[1]"),
        ({"date": "today"}, "'today' is no time"),
    ],
)
def test_a_wrong_field_is_named(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(WrongUse) as caught:
        read_results(json.dumps({**DETAILED, **changes}), "mine.json")
    assert told.replace(": it has", "\n  why: it has") in str(caught.value)
    assert "mine.json" in str(caught.value)


def test_results_of_several_models_are_not_mixed() -> None:
    with fails(WrongUse, "several models", "mock/bytes, other"):
        read_results(json.dumps(PLAIN) + "\n" + json.dumps({**PLAIN, "model_id": "other"}), "x")


def test_what_nobody_writes_is_refused_with_what_is_known() -> None:
    with fails(WrongUse, "as no known tool's results do", "llama-benchy's JSON, CSV and Markdown"):
        read_results('{"tokens_per_second": 900}', "x")
    with fails(WrongUse, "nobody's results", "llama-benchy's JSON, CSV and Markdown"):
        read_results("my machine does 900 tokens a second", "x")


def test_our_own_form_comes_back_with_its_requests() -> None:
    run = make_run(make_result(repeats=make_repeats()), engine="vllm")
    assert read_results(render_own(run), "x") == run


def test_our_own_form_of_another_stoker_is_refused_and_a_bent_one_named() -> None:
    text = render_own(make_run(make_result()))
    with fails(WrongUse, "$.form", "upgrade Stoker"):
        read_results(text.replace("stoker bench 1", "stoker bench 2"), "x")
    with fails(WrongUse, "$.run", "$.cells[0].cell.prompt_tokens"):
        read_results(text.replace('"prompt_tokens": 512', '"prompt_tokens": "many"'), "x")
