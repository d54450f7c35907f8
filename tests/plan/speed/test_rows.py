"""Rows of published measurements: what is read of them, what never is, and what happens to bad ones."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.errors import WrongUse
from stoker.plan.speed.prediction import load_fit, predict_row
from stoker.plan.speed.rows import COLUMNS, number, read_row
from stoker.plan.speed.table import predict_table

DATA = Path(__file__).parents[3] / "tools" / "calibration" / "gb10.csv"
ROW = {
    "model": "Qwen3.6-27B-FP8", "total_params_b": "27", "active_params_b": "27", "weights_gb": "29.7", "quant": "FP8",
    "engine": "vLLM", "engine_version": "0.26.0", "spec_method": "none", "num_spec_tokens": "0", "prompt_tokens": "1024",
    "depth": "0", "concurrency": "5", "note": "tg1024 aggregate, per request 7.54; kv fp8, linear=marlin",
}  # fmt: skip
MEASURED = ("decode_tok_s", "prefill_tok_s", "ttft_ms")


def rate(**changes: str) -> float:
    found = predict_row(ROW | changes, load_fit())
    assert not isinstance(found, str)
    assert found.low_tok_s < found.decode_tok_s < found.high_tok_s
    return found.decode_tok_s


def as_csv(*rows: dict[str, str]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, sorted({name for row in rows for name in row}, key=lambda name: (name != "model", name)))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


@pytest.mark.parametrize("column", MEASURED)
def test_what_was_measured_changes_no_prediction(column: str) -> None:
    assert predict_table(as_csv(ROW | {column: "7.5"}), load_fit()) == predict_table(
        as_csv(ROW | {column: "999"}), load_fit()
    )


def test_a_rate_in_the_note_is_not_read() -> None:
    assert rate(note=ROW["note"].replace("7.54", "123.45")) == rate()


def test_rows_as_published_are_all_predicted_but_those_without_any_size() -> None:
    view = predict_table(DATA.read_text(), load_fit())
    without = {row.model for row in view.rows if row.decode_tok_s is None}
    assert without <= {"GLM-5.3-Flash", "NA (trap 124 workload)"}
    assert len(view.rows) == len(DATA.read_text().splitlines()) - 1


def test_four_published_rates_in_five_lie_in_their_intervals() -> None:
    with DATA.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if not row["set_aside"]]
    found = [(number(row["decode_tok_s"]), predict_row(row, load_fit())) for row in rows]
    inside = [p.low_tok_s <= m <= p.high_tok_s for m, p in found if m is not None and not isinstance(p, str)]
    assert sum(inside) / len(inside) > 0.8


@pytest.mark.parametrize(
    ("slower", "faster"),
    [
        ({"quant": "BF16", "weights_gb": "NA"}, {"quant": "FP8", "weights_gb": "NA"}),
        ({"quant": "Q8_0", "engine": "llama.cpp", "weights_gb": ""},
         {"quant": "Q4_K_M", "engine": "llama.cpp", "weights_gb": ""}),
        ({"prompt_tokens": "25000"}, {"prompt_tokens": "1024"}),
        ({"concurrency": "1"}, {"concurrency": "10"}),
        ({"concurrency": "1"}, {"concurrency": "1", "note": "2 Sparks TP=2"}),
        ({"concurrency": "1"}, {"concurrency": "1", "spec_method": "MTP", "num_spec_tokens": "3"}),
        ({"concurrency": "1", "spec_method": "MTP", "num_spec_tokens": "3", "accept_rate_or_len": "0.4"},
         {"concurrency": "1", "spec_method": "MTP", "num_spec_tokens": "3", "accept_rate_or_len": "0.8"}),
        ({"concurrency": "1", "spec_method": "MTP", "num_spec_tokens": "3", "note": "prose"},
         {"concurrency": "1", "spec_method": "MTP", "num_spec_tokens": "3", "note": "coding prompt"}),
        ({"model": "mine-70b", "total_params_b": "70"},
         {"model": "mine-70b-a5b", "total_params_b": "70", "active_params_b": "5"}),
    ],
)  # fmt: skip
def test_what_should_be_faster_is(slower: dict[str, str], faster: dict[str, str]) -> None:
    assert rate(**slower) < rate(**faster)


def test_two_copies_answer_twice_as_many() -> None:
    together = rate(concurrency="8", note="2x solo, least-busy; tg128")
    assert together == pytest.approx(2 * rate(concurrency="4", note="solo TP=1; tg128"))


def test_a_model_nobody_knows_gets_a_wider_interval() -> None:
    width = {}
    for name in ("Qwen3.6-27B", "somebodys-finetune"):
        found = predict_row(ROW | {"model": name, "quant": "Q99_X" if name.startswith("some") else "FP8"}, load_fit())
        assert not isinstance(found, str)
        width[name] = found.high_tok_s / found.low_tok_s
    assert width["somebodys-finetune"] > width["Qwen3.6-27B"]


def test_only_the_name_is_needed() -> None:
    view = predict_table("model\nQwen3.6-35B-A3B\nmystery\n", load_fit())
    known, unknown = view.rows
    assert known.decode_tok_s is not None
    assert unknown.decode_tok_s is None
    assert "mystery" in unknown.why


def test_a_range_counts_as_its_middle_and_a_word_as_unknown() -> None:
    assert (number("35-41"), number("~4k"), number("1,024"), number("NA"), number("some")) == (
        38.0,
        4000.0,
        1024.0,
        None,
        None,
    )
    view = predict_table(as_csv(ROW | {"concurrency": "several"}), load_fit())
    assert view.rows[0].decode_tok_s is not None
    assert view.rows[0].notes == ("line 2, column `concurrency`: 'several' is no number, taken as unknown",)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "line 1, column 1"),
        ("name,quant\na,b\n", "line 1, column 1"),
        ("model,quant,model\na,b,c\n", "line 1, column 3"),
        ("model,quant\nx-7b,FP8\ny-7b,FP8,more\n", "line 3, column 3"),
        ('model,quant\nx-7b,"FP8\n', "line 2"),
        ('model,quant\n"x"-7b,FP8\n', "line 2"),
    ],
)
def test_a_bad_table_is_an_error_that_names_line_and_column(text: str, where: str) -> None:
    with pytest.raises(WrongUse, match=where):
        predict_table(text, load_fit())


CELLS = st.one_of(
    st.sampled_from(
        ["NA", "", "0", "-1", "1e9", "99999999999999", "0.5", "len 3", "∞", "1-2-3", "none", "MTP", "DFlash", "code"]
    ),
    st.text(max_size=12),
)


@given(st.fixed_dictionaries(dict.fromkeys(COLUMNS, CELLS)))
def test_no_row_is_a_traceback(row: dict[str, str]) -> None:
    asked = read_row(row, {})
    if isinstance(asked, str):
        assert asked
    found = predict_row(row, load_fit())
    assert isinstance(found, str) or 0 < found.low_tok_s <= found.decode_tok_s <= found.high_tok_s
