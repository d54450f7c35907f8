"""llama-benchy's files: read without loss, and written as its own writer writes them."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_samples import make_cell, make_figure, make_result, make_run
from stoker.bench.formats.figures import find_figure
from stoker.bench.formats.llama_benchy import CONTEXT_LOAD
from stoker.bench.formats.llama_benchy_out import expressible, render_csv, render_json, render_markdown, what_it_cannot_say
from stoker.bench.formats.read import read_results
from stoker.errors import WrongUse
from stoker.records import BenchLoad, BenchRun
from support import fails

RECORDED = Path(__file__).parent / "recorded" / "llama-benchy"
NAMES = ("one", "loads", "prefix")


def recorded(file: str) -> str:
    return (RECORDED / file).read_bytes().decode()


def read(file: str) -> BenchRun:
    return read_results(recorded(file), file)


def same(one: Any, other: Any) -> bool:
    """Compares JSON values; numbers may differ in their last digits, since sums are not taken in the same order."""
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(same(*both) for both in zip(one, other, strict=True))
    if isinstance(one, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return bool(one == other)


@pytest.mark.parametrize("name", NAMES)
def test_json_comes_back_as_llama_benchy_wrote_it(name: str) -> None:
    assert same(json.loads(recorded(f"{name}.json")), json.loads(render_json(read(f"{name}.json"))))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("source", ["json", "csv", "md"])
def test_markdown_is_what_llama_benchys_own_writer_makes_of_the_run(name: str, source: str) -> None:
    assert render_markdown(read(f"{name}.{source}")) == recorded(f"{name}.md")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("source", ["json", "csv"])
def test_csv_is_what_llama_benchys_own_writer_makes_of_the_run(name: str, source: str) -> None:
    written, wanted = (
        list(csv.reader(io.StringIO(text))) for text in (render_csv(read(f"{name}.{source}")), recorded(f"{name}.csv"))
    )
    assert [row[:2] for row in written] == [row[:2] for row in wanted]
    assert same([numbers(row) for row in written[1:]], [numbers(row) for row in wanted[1:]])
    assert written[0] == wanted[0]
    assert render_csv(read(f"{name}.{source}")).count("\r\n") == recorded(f"{name}.csv").count("\r\n")


def numbers(row: list[str]) -> list[float | None]:
    return [float(cell) if cell else None for cell in row[2:]]


def test_a_run_is_read_in_our_terms() -> None:
    run = read("loads.json")
    assert (run.tool, run.tool_version, run.subject.model) == ("llama-benchy", "0.4.0", "mock/bytes")
    assert run.words == ("--latency-mode", "none")
    one, many = run.cells[:2]
    assert many.cell == make_cell(128, 16, 0, 4, content="book")
    decode = find_figure(many, "total_decode_tps")
    assert decode is not None
    assert (decode.per, len(decode.values)) == ("repeat", 3)
    ttft = find_figure(many, "ttft_s")
    assert ttft is not None
    assert (ttft.per, len(ttft.values)) == ("request", 12)
    assert 0.04 < ttft.median < 0.1
    # With one request at a time llama-benchy's total is each request's rate, which is not the same quantity.
    assert find_figure(one, "total_prefill_tps") is None
    assert find_figure(many, "total_prefill_tps") is not None
    assert many.asked is None


def test_the_load_of_a_context_is_a_cell_of_its_own() -> None:
    load, use = read("prefix.json").cells[:2]
    assert load.cell == make_cell(512, 16, content=CONTEXT_LOAD, shares_prefix=True)
    assert use.cell == make_cell(128, 16, 512, content="book", shares_prefix=True)


def test_series_are_named_and_not_kept() -> None:
    assert read("series.json").note == "not kept: requests_throughput_over_time, throughput_over_time"


def test_a_table_gives_means_and_nothing_that_looks_like_a_median() -> None:
    run = read("one.md")
    names = {figure.name for result in run.cells for figure in result.figures}
    assert all(name.startswith(("mean_", "std_")) for name in names)
    assert all(not figure.values for result in run.cells for figure in result.figures)
    decode = find_figure(run.cells[0], "mean_request_decode_tps")
    assert decode is not None
    assert f"{decode.median:.2f} ±" in recorded("one.md")


def test_a_table_is_found_in_what_llama_benchy_printed_around_it() -> None:
    end = "llama-benchy (0.4.0)\ndate: 2026-11-22 | latency mode: api\n"
    text = f"Printing results in MD format:\n\n{recorded('one.md')}\n\n{end}"
    run = read_results(text, "post.txt")
    assert run.tool_version == "0.4.0"
    assert run.cells == read("one.md").cells


def change(raw: Any, place: list[Any], value: Any) -> str:
    at = raw
    for key in place[:-1]:
        at = at[key]
    if value is None:
        del at[place[-1]]
    else:
        at[place[-1]] = value
    return json.dumps(raw)


CELL = ["benchmarks", 3]


@pytest.mark.parametrize(
    ("place", "value", "told"),
    [
        ([*CELL, "concurrency"], 0, "$.benchmarks[3].concurrency"),
        ([*CELL, "prompt_size"], "512", "$.benchmarks[3].prompt_size"),
        ([*CELL, "tg_throughput", "values", 1], -5.0, "$.benchmarks[3].tg_throughput.values[1]"),
        ([*CELL, "tg_throughput", "mean"], 9999.0, "9999 does not follow from its values"),
        ([*CELL, "e2e_ttft", "std"], 9999.0, "9999 does not follow from its values"),
        ([*CELL, "e2e_ttft", "values"], [], "$.benchmarks[3].e2e_ttft.values"),
        ([*CELL, "ttfr"], None, "`ttfr`"),
        (["latency_mode"], "psychic", "$.latency_mode"),
        (["timestamp"], "yesterday", "$.timestamp"),
        (["benchmarks", 0, "pp_throughput"], {"mean": 1.0, "std": 0.0, "values": [1.0]}, "$.benchmarks[0].pp_throughput"),
        (["benchmarks", 0, "ttfr", "mean"], float("nan"), "NaN is no number"),
    ],
)
def test_a_wrong_field_is_named_with_file_and_place(place: list[Any], value: Any, told: str) -> None:
    with fails(WrongUse, "mine.json cannot be imported", told):
        read_results(change(json.loads(recorded("loads.json")), place, value), "mine.json")


def test_a_field_that_a_later_version_adds_is_named() -> None:
    text = change(json.loads(recorded("one.json")), ["benchmarks", 0, "joules"], 3.5)
    assert read_results(text, "x").note == "not kept: joules"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("pp256 @", "pq256 @", "'pq256 @ d512' is no test"),
        (" ± ", " +- ", "is no number of tokens or milliseconds"),
        ("| mock/bytes |         tg32 |", "| another    |         tg32 |", "several models"),
        ("   t/s |", "   u/s |", "not the columns"),
    ],
)
def test_a_wrong_row_of_a_table_is_named(old: str, new: str, told: str) -> None:
    text = recorded("one.md")
    assert old in text
    with fails(WrongUse, "mine.md cannot be imported: line ", told):
        read_results(text.replace(old, new, 1), "mine.md")


def test_a_row_cut_short_is_named() -> None:
    with fails(WrongUse, "mine.csv cannot be imported: row 3", "5 columns"):
        read_results("\n".join([*recorded("one.csv").splitlines()[:2], "mock/bytes,tg32,1,2,3"]), "mine.csv")


def test_a_rate_without_its_prompt_is_not_guessed() -> None:
    text = "\n".join(line for line in recorded("one.md").splitlines() if "pp256" not in line)
    with fails(WrongUse, "no row before it tells the prompt of tg32"):
        read_results(text, "mine.md")


def test_our_own_run_is_written_with_llama_benchys_definitions() -> None:
    figures = (make_figure("first_chunk_s", (0.5, 0.25), "request"), make_figure("ttft_s", (0.6, 0.3), "request"))
    run = make_run(make_result(make_cell(100, 32, 400), *figures, make_figure("itl_token_s", (0.02, 0.02), "request")))
    told = json.loads(render_json(run))["benchmarks"][0]
    assert told["ttfr"]["values"] == told["est_ppt"]["values"] == [500.0, 250.0]
    assert told["e2e_ttft"]["mean"] == 450.0
    assert told["pp_throughput"] == told["pp_req_throughput"] == {"mean": 1500.0, "std": 500.0, "values": [1000.0, 2000.0]}
    assert told["tg_throughput"] is None


def test_a_prefix_that_was_cached_is_not_counted_as_prefilled() -> None:
    run = make_run(make_result(make_cell(100, 32, 400, shares_prefix=True), make_figure("first_chunk_s", (0.5,), "request")))
    assert json.loads(render_json(run))["benchmarks"][0]["pp_req_throughput"]["values"] == [200.0]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"load": BenchLoad("poisson", None, 2.0)}, "poisson"), ({"turns": 3}, "several turns"),
        ({"new": None}, "unknown length"),
    ],
)  # fmt: skip
def test_what_llama_benchy_cannot_say_is_left_out_by_name(changes: dict[str, Any], why: str) -> None:
    cell = make_cell(**changes)
    assert why in what_it_cannot_say(cell)
    assert expressible(make_run(make_result(cell), make_result())) == [make_result()]


amounts = st.floats(0.001, 1e6, allow_subnormal=False)


@st.composite
def runs(draw: st.DrawFn) -> BenchRun:
    cells = []
    for prompt, concurrency in draw(
        st.lists(st.tuples(st.integers(1, 10**6), st.integers(1, 4)), min_size=1, unique=True, max_size=4)
    ):
        repeats = draw(st.integers(1, 4))
        cell = make_cell(prompt, draw(st.integers(1, 4096)), draw(st.integers(0, 4096)), concurrency, content="book")
        values = st.lists(amounts, min_size=repeats * concurrency, max_size=repeats * concurrency)
        figures = [make_figure(name, draw(values), "request") for name in ("ttft_s", "first_chunk_s", "request_decode_tps")]
        cells.append(make_result(cell, *figures, make_figure("total_decode_tps", draw(values)[:repeats])))
    return make_run(*cells)


def test_a_run_without_answers_is_a_table_without_rows() -> None:
    [head, rule] = render_markdown(make_run()).splitlines()
    assert len(head) == len(rule)


@given(runs())
def test_what_is_written_is_read_again(run: BenchRun) -> None:
    again = read_results(render_json(run), "x")
    assert [result.cell for result in again.cells] == [result.cell for result in run.cells]
    for result, written in zip(again.cells, run.cells, strict=True):
        for figure in written.figures:
            found = find_figure(result, figure.name)
            if found is not None and not (figure.name == "total_decode_tps" and result.cell.load.concurrency == 1):
                assert found.values == pytest.approx(figure.values)
        assert find_figure(result, "ttft_s") is not None
    for render in (render_csv, render_markdown):
        table = read_results(render(run), "x")
        assert [result.cell.prompt_tokens for result in table.cells] == [result.cell.prompt_tokens for result in run.cells]
        for result, written in zip(table.cells, run.cells, strict=True):
            told, meant = find_figure(result, "mean_ttft_s"), find_figure(written, "ttft_s")
            assert told is not None
            assert meant is not None
            assert told.median == pytest.approx(sum(meant.values) / len(meant.values), abs=1e-5)


@given(st.text())
def test_no_text_is_taken_for_results_or_breaks_the_reader(text: str) -> None:
    for begin in ("", "{", "[", '{"benchmarks": [', "model,test_name,", "| model"):
        with pytest.raises(WrongUse):
            read_results(begin + text, "x")
