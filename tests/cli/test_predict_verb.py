"""`stoker predict` as people and programs use it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from home import Home
from stoker.box import LocalBox
from stoker.facts.model.read import read_model
from stoker.flows.ownership import make_state_folder
from stoker.records import BenchCell, BenchFigure, BenchLoad, BenchRun, BenchSubject, CellResult
from stoker.store.bench import BenchStore
from support import DEMO

DATA = Path(__file__).parents[2] / "tools" / "calibration" / "gb10.csv"


def test_a_published_model_is_predicted_without_its_files(home: Home) -> None:
    said = home.run("predict", "Qwen3.6-27B-FP8", "--on", "gb10", "--engine", "vllm", "--measured", "7.8").stdout
    for part in ("predicted, not measured", "273 GB/s", "four times in five", "of what this memory allows; the rest is"):
        assert part in said


def test_a_prediction_is_json_for_programs(home: Home) -> None:
    view = home.json("predict", "Qwen3.6-27B-FP8", "--on", "gb10")
    assert view["expected"]["low_tok_s"] < view["expected"]["decode_tok_s"] < view["expected"]["high_tok_s"]
    assert view["limit_tok_s"] > view["expected"]["decode_tok_s"]
    assert {part["name"] for part in view["reads"]} >= {"feed-forward layers", "output matrix"}


def test_the_demo_model_is_predicted_from_its_file(home: Home) -> None:
    view = home.json("predict", "demo", "--on", "gb10")
    assert view["model"] == "Stoker Demo"
    assert view["expected"] is not None


def test_on_a_machine_that_nobody_fitted_the_limit_is_what_is_known(home: Home) -> None:
    said = home.run("predict", "demo", "--on", "pc", "--bandwidth", "60").stdout
    assert "only the limit is known" in said
    assert "--bandwidth" in home.run("predict", "demo", "--on", "pc", code=2).stderr


def test_without_a_gpu_the_processors_memory_is_measured(home: Home) -> None:
    view = home.json("predict", "demo")
    if view["machine"] != "a machine without a GPU":
        pytest.skip("this machine has a GPU")
    assert view["bandwidth_bytes_per_s"] > 1e9
    said = home.run("predict", "demo").stdout
    assert "GB/s: measured just now" in said
    assert " MB at " in said


def test_a_model_whose_files_are_elsewhere_is_predicted_for_a_named_machine_and_that_is_said(home: Home) -> None:
    view = home.json("predict", "Qwen3.6-27B-FP8")
    if view["machine"] == "GB10":
        assert "not for this machine" in view["machine_note"]
    assert home.run("predict", "Qwen3.6-27B-FP8", "--on", "gb10").stdout.startswith("Qwen3.6-27B-FP8, vllm on ")


def test_a_file_that_is_not_there_is_no_models_name(home: Home) -> None:
    said = home.run("predict", "mine-8b.gguf", code=2).stderr
    assert "there is no file mine-8b.gguf" in said
    assert "`stoker predict mine-8b` goes by the name alone" in said


def keep_run(
    home: Home, tok_s: float, flags: tuple[str, ...] = (), requests: int = 1, service: str = "small"
) -> None:  # fmt: skip
    """Keeps a run of a service, as `stoker bench` would have."""
    cell = BenchCell(512, 128, 0, BenchLoad("closed", requests), "prose")
    figure = BenchFigure("total_decode_tps", "repeat", (tok_s,), tok_s, None, None, None)
    subject = BenchSubject(
        None,
        service,
        service,
        "llamacpp",
        model_revision=read_model(DEMO).digest,
        flags=flags,
        machine=LocalBox().uname()[0],
    )
    make_state_folder(home.paths)
    store = BenchStore(home.paths.bench_database)
    result = CellResult(cell, (figure,), ("usage",), 1, 0)
    store.write(BenchRun(None, "stoker", "0", 1.0, 1.0, 1, is_whole=True, subject=subject, cells=(result,)))
    store.close()


def test_a_kept_run_without_drafts_is_what_was_measured(home: Home) -> None:
    home.configure(f'[service.small]\nmodel = "{DEMO}"\n')
    words = ("predict", "small", "--bandwidth", "60")
    assert home.json(*words)["measured"] is None
    keep_run(home, 31.0)
    keep_run(home, 99.0, flags=("--spec-type", "draft-simple"))
    keep_run(home, 77.0, requests=4)
    seen = home.json(*words)["measured"]
    assert (seen["measured_tok_s"], seen["run_id"]) == (31.0, 1)
    assert "31 tok/s (run 1)" in home.run(*words).stdout
    assert home.json(*words, "--measured", "20")["measured"] == {**seen, "measured_tok_s": 20.0, "run_id": None,
                                                                  "of_limit": seen["of_limit"] * 20 / 31}  # fmt: skip


def test_a_kept_run_of_the_demo_is_what_was_measured_of_it(home: Home) -> None:
    words = ("predict", "demo", "--bandwidth", "60")
    assert home.json(*words)["measured"] is None
    keep_run(home, 31.0, service="demo")
    assert home.json(*words)["measured"]["measured_tok_s"] == 31.0


@pytest.mark.parametrize(
    ("said", "sort"), [("eagle3", "eagle"), ("nextn", "mtp"), ("standalone", "draft"), ("block", "block")]
)
def test_drafting_is_named_as_the_engines_and_tables_name_it(home: Home, said: str, sort: str) -> None:
    words = ("predict", "Gemma4-26B-A4B", "--on", "gb10", "--quantisation", "fp8", "--speculation")
    assert home.json(*words, said)["drafting"] == home.json(*words, sort)["drafting"] != []


def test_drafting_and_people_are_shown(home: Home) -> None:
    said = home.run("predict", "Gemma4-26B-A4B", "--on", "gb10", "--quantisation", "fp8", "--speculation", "mtp",
                    "--accept-rate", "0.56", "--draft-tokens", "6", "--users", "4", "--think", "20s").stdout  # fmt: skip
    for part in ("with drafting (mtp)", "tokens a step", "people who think for 20.0 s", "first token"):
        assert part in said


def test_where_a_model_has_no_room_nobody_is_promised_anything(home: Home) -> None:
    words = ("predict", "Llama-3.1-405B", "--on", "gb10", "--quantisation", "bf16", "--users", "4")
    assert "it has no room there: it takes 810 GB" in home.run(*words).stdout
    assert home.json(*words)["capacity"] == []


def test_only_as_many_are_answered_at_once_as_have_room(home: Home) -> None:
    words = ("predict", "Qwen3.6-27B", "--quantisation", "bf16", "--users", "16", "--think", "1s", "--prompt", "8000")
    large, small = (home.json(*words, "--on", box)["capacity"][-1] for box in ("gb10", "gb10-64"))
    assert large["users"] == small["users"] == 16
    assert small["tok_s"] > 1.2 * large["tok_s"], "few share the one with less memory"
    assert small["ttft_s"] > 2 * large["ttft_s"], "and the others wait for them"


def test_of_a_rate_that_is_faster_than_expected_the_rest_is_told_too(home: Home) -> None:
    said = home.run("predict", "Mistral-Small-4-119B-NVFP4", "--on", "gb10", "--engine", "vllm", "--measured", "31").stdout
    told = " ".join(said.split())
    assert "80% of what this memory allows, and 14% faster than expected; the rest, parted as is expected, is" in told
    shares = [int(one) for one in re.findall(r"(\d+)%", told.split("parted as is expected, is")[1])]
    assert sum(shares) == pytest.approx(20, abs=3)


def test_rows_are_predicted_and_those_that_cannot_be_say_why(home: Home) -> None:
    table = "model,quant,engine,concurrency,decode_tok_s\nQwen3.6-27B,FP8,vLLM,1,7.8\nmystery,FP8,vLLM,1,9\n"
    view = json.loads(home.run("predict", "--rows", "-", "--json", input=table).stdout)
    known, unknown = view["rows"]
    assert known["low_tok_s"] < 7.8 < known["high_tok_s"]
    assert unknown["decode_tok_s"] is None
    assert "mystery" in unknown["why"]
    assert "mystery" in home.run("predict", "--rows", "-", input=table).stdout


def test_a_whole_published_table_is_predicted(home: Home) -> None:
    view = home.json("predict", "--rows", str(DATA))
    assert len(view["rows"]) == len(DATA.read_text().splitlines()) - 1


def test_wrong_use_is_said_in_a_sentence(home: Home, tmp_path: Path) -> None:
    binary = tmp_path / "rows.csv"
    binary.write_bytes(b"model\nx-7b\n\xff\n")
    for words, part in (
        ((), "nothing to predict"),
        (("a-7b", "--rows", "b.csv"), "nothing to predict, or too much"),
        (("--rows", "none.csv"), "cannot be read"),
        (("--rows", str(binary)), "line 3, column 1"),
        (("nonsense",), "no model that is known by name"),
        (("stoker-demo",), "stoker-demo is the model of service demo: stoker predict demo"),
        (("a-7b", "--engine", "trt"), "no engine called"),
        (("a-7b", "--accept-rates", "91,90"), "are no rates"),
        (("a-7b", "--speculation", "mtp", "--accept-rate", "0.5"), "number of draft tokens"),
    ):
        said = home.run("predict", *words, code=2).stderr
        assert part in said
        assert "Traceback" not in said


def test_a_plan_shows_its_predicted_speed_as_a_prediction(home: Home) -> None:
    assert "speed   predicted: " in home.run("plan", "demo", "--on", "gb10").stdout
    report = home.json("plan", "demo", "--on", "gb10")
    assert report["speed"]["expected"]["decode_tok_s"] > 0
    assert home.json("plan", "demo", "--on", "pc")["speed"] is None


def test_a_draft_model_is_counted_by_its_size_whoever_names_it(home: Home) -> None:
    words = (
        "predict",
        "Qwen3-32B",
        "--on",
        "gb10",
        "--quantisation",
        "fp8",
        "--speculation",
        "draft",
        "--draft-tokens",
        "4",
    )
    rates = {}
    for draft in ("Qwen3-0.6B", "Qwen3-14B"):
        view = home.json(*words, "--draft", draft)
        assert view["draft"] == draft
        rates[draft] = view["drafting"][-1]["prediction"]["decode_tok_s"]
    assert rates["Qwen3-0.6B"] > 1.5 * rates["Qwen3-14B"]
    assert "--draft names another" in " ".join(home.run(*words).stdout.split())
    assert home.json("predict", "demo", "--on", "gb10", "--speculation", "draft")["draft"] == "Stoker Demo Draft"
    assert "add --speculation draft" in home.run("predict", "demo", "--on", "gb10", "--draft", "Qwen3-4B", code=2).stderr
    assert "no model that is known by name" in home.run(*words, "--draft", "nothing", code=2).stderr


def test_a_services_own_draft_is_what_is_counted_but_not_a_head(home: Home) -> None:
    folder = DEMO.parent
    home.configure("".join(
        f'[service.{kind}]\nmodel = "{folder}/hf"\nengine = "vllm"\nspeculation = "{kind}"\ndraft = "{folder}/hf-{kind}"\n'
        for kind in ("draft", "eagle3")
    ))  # fmt: skip
    assert home.json("predict", "draft", "--on", "gb10", "--speculation", "draft")["draft"]
    assert not home.json("predict", "eagle3", "--on", "gb10", "--speculation", "draft")["draft"]


def test_a_draft_model_needs_room_and_a_head_is_none(home: Home) -> None:
    words = ("predict", "Qwen3-32B", "--on", "gb10", "--quantisation", "fp8", "--speculation", "draft", "--users", "4")
    small, large = (home.json(*words, "--draft", name) for name in ("Qwen3-0.6B-BF16", "Qwen3-235B-A22B"))
    assert (small["machine_note"], bool(small["capacity"])) == ("", True)
    assert "with its draft it has no room there" in large["machine_note"]
    assert not large["capacity"]
    assert "Qwen3-0.6B-BF16 tells" in home.json(*words, "--draft", "Qwen3-0.6B")["machine_note"]
    refused = home.run(
        "predict", "demo", "--on", "gb10", "--speculation", "draft", "--draft", str(DEMO.parent / "hf-eagle3"), code=2
    )
    assert "is a head" in refused.stderr
    assert "--speculation eagle" in refused.stderr
