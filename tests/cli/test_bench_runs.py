"""What `stoker bench list`, `show`, `import` and `export` tell of runs that others measured."""

from __future__ import annotations

import json
from pathlib import Path

from home import Home
from stoker.bench.published import load_published

RECORDED = Path(__file__).parents[1] / "bench" / "recorded"


def keep(home: Home, file: str, *words: str) -> int:
    """Imports a recorded file and returns the number of its run."""
    number = home.json("bench", "import", str(RECORDED / file), *words)["run"]["id"]
    assert isinstance(number, int)
    return number


def test_nothing_is_kept_at_first_and_that_is_no_fault(home: Home) -> None:
    assert "No run is kept yet" in home.run("bench", "list").stdout
    assert home.json("bench", "list") == []
    assert "no run is kept yet" in home.run("bench", "show", code=2).stderr
    assert not home.paths.bench_database.exists()


def test_imported_results_are_listed_and_shown(home: Home) -> None:
    keep(home, "llama-benchy/loads.json", "--machine", "spark-2")
    keep(home, "sglang/plain.jsonl", "--model", "mine")
    last, first = home.run("bench", "list").stdout.splitlines()[1:]
    assert last.split()[:1] == ["2"]
    assert "mine" in last
    assert "sglang bench_serving" in last
    assert "spark-2" in first
    shown = home.run("bench", "show", "1").stdout
    assert "run 1: llama-benchy 0.4.0" in shown
    assert "mock/bytes" in shown
    assert "█" in shown
    assert home.run("bench", "show").stdout.startswith("run 2: sglang")


def test_a_table_of_means_says_that_they_are_means(home: Home) -> None:
    keep(home, "llama-benchy/one.md")
    shown = home.run("bench", "show").stdout
    assert "* a mean; the values behind it are not known" in shown
    assert "chunk-prefill t/s" in shown  # llama-benchy's is another quantity than ours, and has another heading


def test_a_run_goes_out_as_llama_benchy_would_have_written_it(home: Home) -> None:
    keep(home, "llama-benchy/loads.json")
    wanted = (RECORDED / "llama-benchy" / "loads.md").read_text()
    assert home.run("bench", "export", "1", "--format", "md").stdout == wanted + "\n"
    file = home.folder / "out.csv"
    home.run("bench", "export", "last", "--format", "csv", "-o", str(file))
    assert file.read_bytes().startswith(b"model,test_name,t_s_mean,")
    assert file.read_bytes().count(b"\r\n") == 17


def test_a_run_is_carried_to_another_machine_whole(home: Home) -> None:
    keep(home, "vllm/detailed.json")
    file = home.folder / "run.json"
    home.run("bench", "export", "1", "--format", "stoker", "-o", str(file))
    home.run("bench", "import", str(file))
    one, other = (home.json("bench", "show", number, "--requests")["run"] for number in ("1", "2"))
    assert {**one, "id": None} == {**other, "id": None}


def test_what_another_form_cannot_hold_is_named(home: Home) -> None:
    keep(home, "vllm/append.json")
    done = home.run("bench", "export", "1")
    assert len(json.loads(done.stdout)["benchmarks"]) == 1
    assert "left out: pp256 @ d0: requests that come at a rate (poisson)" in done.stderr
    refused = home.run("bench", "export", "published:gemma4-mtp-n4", code=3)
    assert "cannot hold run published:gemma4-mtp-n4" in refused.stderr
    assert "an answer of unknown length" in refused.stderr


def test_what_others_published_is_listed_and_shown_with_its_source(home: Home) -> None:
    names = [line["name"] for line in home.json("bench", "list", "--published")]
    assert names == list(load_published())
    assert "qwen3.6-27b-nvfp4-mtp" in home.run("bench", "list", "--published").stdout
    shown = home.run("bench", "show", "published:qwen3.6-27b-nvfp4-mtp").stdout
    assert "https://al-engr.com/qwen3.6-ngram-vs-nvfp4-mtp.html" in shown
    assert "9,422* ms" in shown
    assert "gemma4-mtp-n4" in home.run("bench", "show", "published:gemma4-mtp-n44", code=2).stderr


def test_runs_and_files_that_are_not_there_are_told(home: Home) -> None:
    keep(home, "llama-benchy/one.json")
    for name in ("7", "99999999999999999999", "published:", "coder", "-1x"):
        assert "stoker bench list" in home.run("bench", "show", "--", name, code=2).stderr, name
    assert "cannot be read" in home.run("bench", "import", str(home.folder), code=2).stderr
    assert "cannot be written" in home.run("bench", "export", "1", "-o", str(home.folder / "no" / "x"), code=1).stderr
    empty = home.folder / "empty"
    empty.write_text("")
    assert "nobody's results are known to look like it" in home.run("bench", "import", str(empty), code=2).stderr


def test_control_characters_of_others_do_not_reach_the_terminal(home: Home) -> None:
    text = (RECORDED / "llama-benchy" / "one.json").read_text().replace("mock/bytes", "mock\\u001b[2Jbytes")
    file = home.folder / "evil.json"
    file.write_text(text)
    home.run("bench", "import", str(file))
    for words in (("bench", "list"), ("bench", "show")):
        assert "\x1b" not in home.run(*words).stdout


def test_two_runs_are_compared_with_what_differs_first(home: Home) -> None:
    keep(home, "llama-benchy/loads.json", "--machine", "spark-1")
    keep(home, "llama-benchy/loads.json", "--machine", "spark-2")
    told = home.run("bench", "compare", "1", "2").stdout
    assert told.index("machine") < told.index("pp128 tg16, c4")
    assert "no difference seen (between" in told
    assert "too few repeats to tell" in told
    comparison = home.json("bench", "compare", "1", "last")
    assert comparison["differences"] == [{"what": "machine", "a": "spark-1", "b": "spark-2"}]


def test_a_run_is_compared_with_what_others_published(home: Home) -> None:
    told = home.run("bench", "compare", "published:qwen3.6-27b-fp8-ngram", "published:qwen3.6-27b-nvfp4-mtp").stdout
    assert "--speculative-algorithm" in told
    # The report itself says +84, +42, +90 and +130 %.
    rates = [line.split("decode t/s all")[1].split()[2] for line in told.splitlines() if "decode t/s all" in line]
    assert [rates[place] for place in (0, 1, 4, 5)] == ["+83", "+42", "+90", "+130"]
    assert "(means): one of the two gives no values" in told
    keep(home, "vllm/plain.json")
    assert "No cell was asked of both" in home.run("bench", "compare", "published:gemma4-fp8", "last").stdout
