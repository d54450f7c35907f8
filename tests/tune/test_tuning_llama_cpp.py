"""Tuning the real llama.cpp with the demo model: what is written, and what is left as it was."""

from __future__ import annotations

import signal
import subprocess
import sys
import tomllib
from typing import Any

import gguf
import pytest

from home import Home
from lying_program import write_lying_engine
from stoker.box import LocalBox
from stoker.facts.machine.memory import read_memory
from stoker.records import State
from stoker.tune.choosing import ALIKE
from support import DEMO, DEMO_DRAFT, write_gguf
from tuned_service import MEASURE_S, OFF, QUICK, SELF, by_name, coder_table, configure, good_plans, name_of, write_server

LOOKUPS = ("ngram", "ngram 32 after 3")  # as llama.cpp has it, and what tells of the other lengths


def test_one_kind_alone_is_tried_beside_off_and_what_the_service_has(home: Home) -> None:
    configure(home, OFF)
    view = home.json("tune", "coder", "--content", "code", "--only", "ngram", *QUICK)
    ways = by_name(view)
    assert set(ways) == {"off", "ngram"}
    assert {one["tried"] for one in ways.values()} == {"measured"}
    repeats = {name: repeats_of(home, way["run_ids"][0]) for name, way in ways.items()}
    assert repeats["off"] >= repeats["ngram"] > 0, "off is what all are compared with, and measured for longest"
    refused = home.run("tune", "coder", "--only", "trees", code=2).stderr
    assert "there are no ways of the kind `trees` for this service" in refused
    assert "name one of: ngram, lookups" in refused
    assert "--only is for ways to draft" in home.run("tune", "coder", "--knob", "parallel", "--only", "ngram", code=2).stderr


def repeats_of(home: Home, run_id: int) -> int:
    """How often a kept run measured its only cell."""
    return max(len(one["values"]) for one in figures_of(home, run_id))


def measuring_s(home: Home, run_id: int) -> float:
    """How long a kept run measured its only cell, of one request at a time."""
    [each_s] = [one["values"] for one in figures_of(home, run_id) if one["name"] == "e2e_s"]
    return float(sum(each_s))


def figures_of(home: Home, run_id: int) -> list[dict[str, Any]]:
    """Returns the figures of a kept run's only cell."""
    [cell] = home.json("bench", "show", str(run_id))["run"]["cells"]
    figures: list[dict[str, Any]] = cell["figures"]
    return figures


def test_a_draft_that_cannot_pay_is_found_out_and_rollback_goes_back_to_it(home: Home) -> None:
    text = configure(home, SELF)
    home.run("up", "coder")
    before = home.service("coder").plan_id
    view = home.json("tune", "coder", "--content", "code", *QUICK)
    ways = by_name(view)
    assert view["chosen"]["kind"] in ("off", "ngram")
    assert {ways[name]["tried"] for name in ("off", "draft 4", *LOOKUPS)} == {"measured"}
    assert ways["draft 4"]["accept_rate"] > 0.7
    assert ways["off"]["measured"]["tok_s"] > ways["draft 4"]["measured"]["tok_s"]
    assert ways["draft 8"]["tried"] == "left", "it would lose even if it were always right"
    measured_s = measuring_s(home, ways["draft 4"]["run_ids"][0])
    assert measured_s > 2 * MEASURE_S, "what the service has is what all are compared with too, and measured for longest"
    assert "as large as" in view["warnings"][0]
    assert coder_table(home)["speculation"] == view["chosen"]["kind"]
    assert f'\n# draft = "{DEMO}"   # by mistake\n' in home.paths.config.read_text()
    assert "# tune: " in home.paths.config.read_text()
    kept = [line for line in text.splitlines() if not line.startswith(("speculation", "draft"))]
    assert [line for line in home.paths.config.read_text().splitlines() if line in kept] == kept, "no other line changes"
    now = home.service("coder")
    assert (now.state, now.plan_id == before) == (State.READY, False)
    assert good_plans(home) == [before, now.plan_id], "no trial is a plan to go back to"
    home.run("rollback", "coder")
    assert home.service("coder").plan_id == before


def test_with_a_draft_and_two_contents_the_choice_is_what_was_measured(home: Home) -> None:
    configure(home, OFF.replace("speculation", f'draft = "{DEMO_DRAFT}"\nspeculation').replace('"off"   #', '"draft" #'))
    home.run("up", "coder")
    view = home.json("tune", "coder", "--content", "code", "--content", "prose", *QUICK)
    ways = by_name(view)
    measured = {name: one["measured"]["tok_s"] for name, one in ways.items() if one["measured"]}
    assert set(measured) >= {"off", "draft 3", *LOOKUPS}
    assert 2 * view["starts"] <= view["sweep_starts"] == 16
    guessed = [one for name, one in ways.items() if name.startswith("draft") and name not in measured]
    # It costs more than it gains here: one or two of its eight lengths are enough, three where the machine's pace changes.
    assert len(guessed) >= 4, "no more than half of a draft model's lengths need be tried"
    assert all(one["predicted"]["low_tok_s"] <= one["predicted"]["high_tok_s"] for one in guessed)
    chosen = measured[name_of(view["chosen"])]
    told = ("no difference", "faster, more than the starts", "both were asked it is no faster")
    told_otherwise = any(one in view["why"] for one in told)
    assert chosen * (1 + ALIKE) >= max(measured.values()) or told_otherwise
    assert coder_table(home)["speculation"] == view["chosen"]["kind"]
    assert home.service("coder").state is State.READY


def test_what_was_measured_today_is_not_measured_again(home: Home) -> None:
    text = configure(home, OFF)
    first = home.json("tune", "coder", *QUICK)
    assert {name for name, one in by_name(first).items() if one["tried"] == "measured"} == {"off", *LOOKUPS}
    assert home.service("coder").state is State.STOPPED, "it rested before, and rests again"
    home.paths.config.write_text(text)
    second = home.json("tune", "coder", *QUICK)
    assert {name for name, one in by_name(second).items() if one["tried"] == "kept"} == {"off", *LOOKUPS}
    assert (first["starts"], second["starts"]) == (3, 0)
    assert [one["measured"] for one in second["ways"]] == [one["measured"] for one in first["ways"]]
    assert second["chosen"] == first["chosen"]


def test_a_dry_run_starts_nothing_and_tells_how_long_it_may_take(home: Home) -> None:
    text = configure(home, SELF)
    view = home.json("tune", "coder", "--dry-run")
    assert (view["took_s"], view["expected_s"], view["sweep_starts"]) == (None, None, 16)
    assert not home.daemon_answers
    home.run("up", "coder")
    view = home.json("tune", "coder", "--dry-run", "--measure", "10s")
    assert view["expected_s"] > 5 * 10
    assert {one["tried"] for one in view["ways"]} == {"left"}
    assert home.paths.config.read_text() == text
    assert "how long" not in home.run("tune", "coder", "--dry-run").stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_leaves_service_and_file_as_they_were(home: Home, number: signal.Signals) -> None:
    text = configure(home, SELF)
    home.run("up", "coder")
    before = home.service("coder").plan_id
    argv = [sys.executable, "-u", "-m", "stoker", "tune", "coder", *QUICK]
    with subprocess.Popen(argv, env=home.environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert any(line.startswith("draft 4: ") for line in process.stdout)
        while home.service("coder").plan_id == before:  # until it runs another way
            assert process.poll() is None
        process.send_signal(number)
        said = process.stdout.read()
    assert process.returncode == 1
    assert "interrupted" in said
    now = home.service("coder")
    assert (now.state, now.plan_id) == (State.READY, before)
    assert home.paths.config.read_text() == text
    assert good_plans(home) == [before]


def test_a_crash_with_many_draft_tokens_is_a_result_and_tuning_goes_on_with_fewer(home: Home) -> None:
    crash = 'if dict(zip(words, words[1:])).get("--spec-ngram-simple-size-m") == "32": sys.exit("CUDA error: oops")'
    configure(home, OFF.replace("reasoning", f'server = "{write_server(home, crash)}"\nreasoning'))
    home.run("up", "coder")
    view = home.json("tune", "coder", *QUICK)
    ways = by_name(view)
    assert ways[LOOKUPS[1]]["tried"] == "failed"
    assert "oops" in ways[LOOKUPS[1]]["why"]
    assert ways["ngram 16 after 3"]["tried"] == "measured"
    assert view["chosen"]["kind"] in ("off", "ngram")


def test_a_way_that_does_not_pass_its_gate_ends_everything_at_once(home: Home) -> None:
    liar = write_lying_engine(home.folder / "liar", "no-done")
    lies = f'if "--spec-type" in words: os.execv({str(liar)!r}, [{str(liar)!r}, *words])'
    text = configure(home, OFF.replace("reasoning", f'server = "{write_server(home, lies)}"\nreasoning'))
    home.run("up", "coder")
    before = home.service("coder").plan_id
    done = home.run("tune", "coder", *QUICK, code=1)
    assert "did not pass its gate" in done.stdout
    assert home.paths.config.read_text() == text
    assert (home.service("coder").state, home.service("coder").plan_id) == (State.READY, before)


def test_nothing_is_tried_where_memory_is_nearly_gone(home: Home) -> None:
    available_bytes = read_memory(LocalBox()).available_bytes
    text = configure(home, OFF, limits=f"memory_floor_bytes = {int(0.85 * available_bytes)}")
    home.run("up", "coder")
    done = home.run("tune", "coder", *QUICK, code=1)
    assert "of memory are available" in done.stdout
    assert "ngram: " not in done.stdout
    assert home.paths.config.read_text() == text
    assert home.service("coder").state is State.READY


def test_a_table_that_changes_meanwhile_is_not_written_over(home: Home) -> None:
    configure(home, SELF)
    home.run("up", "coder")
    argv = [sys.executable, "-u", "-m", "stoker", "tune", "coder", *QUICK]
    with subprocess.Popen(argv, env=home.environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert any(line.startswith("draft 4: ") for line in process.stdout)
        changed = home.paths.config.read_text().replace("draft_tokens = 4", "draft_tokens = 5")
        home.paths.config.write_text(changed)
        said = process.stdout.read()
    assert "was changed meanwhile" in " ".join(said.split())
    assert home.paths.config.read_text() == changed


def test_the_demo_is_tuned_and_nothing_is_written_since_no_table_is_its_own(home: Home) -> None:
    home.run("up")
    before = home.service("demo").plan_id
    text = home.paths.config.read_text()
    page = home.folder / "tuning.html"
    said = home.run("tune", "--yes", *QUICK, "--content", "code", "-o", str(page)).stdout
    assert said.startswith("demo (llamacpp): how it drafts, for code, one request at a time. Now: ")
    # It may be started again: the last two are, where starts are left.
    off, *_ = [line for line in said.splitlines() if line.startswith("off: ") and "of at most" in line]
    assert "of at most 8)" in off, "it was up"
    assert "<svg" in page.read_text()
    assert "not written" in said or "nothing was changed" in said
    assert "●" in said
    assert (home.service("demo").plan_id, home.paths.config.read_text()) == (before, text)


def test_wrong_use_is_said_before_anything_starts(home: Home) -> None:
    configure(home, OFF)
    for words in (
        "nobody", "coder --objective goodput", "coder --concurrency 4", "coder --budget soon", "coder -o x.pdf",
        "coder --knob speed", "coder --knob parallel --objective single",
    ):  # fmt: skip
        assert home.run("tune", *words.split(), code=2).stderr
    nobody = home.run("tune", code=2)
    assert "nobody named it" in nobody.stderr
    assert "stoker tune demo" in nobody.stderr
    for size in ("memory_share", "graph_batch"):
        assert f"`{size}`" in home.run("tune", "coder", "--knob", size, code=3).stderr
    home.configure(f'[service.x]\nmodel = "{DEMO}"\nspeculation = """off"""\n')
    refused = home.run("tune", "x", code=3).stderr
    assert "[service.x]" in refused
    assert not home.daemon_answers


def test_a_draft_that_does_not_fit_is_refused_with_the_reason_before_anything_starts(home: Home) -> None:
    other = write_gguf(
        home.folder / "other.gguf",
        pairs={"tokenizer.ggml.model": ("gpt2", gguf.GGUFValueType.STRING)},
        arrays={"tokenizer.ggml.tokens": [f"t{number}" for number in range(100)]},
    )
    text = configure(home, SELF.replace(f'draft = "{DEMO}"', f'draft = "{other}"'))
    for words in (("--dry-run",), (), ("--beside",)):
        refused = " ".join(home.run("tune", "coder", *QUICK, *words, code=3).stderr.split())
        assert "cannot draft for" in refused
        assert "vocabularies differ" in refused
    assert home.paths.config.read_text() == text
    assert not home.daemon_answers


def test_a_lookup_that_the_table_says_is_known_as_such_and_tells_of_the_others(home: Home) -> None:
    text = home.folder / "songs.txt"
    text.write_text("one bottle of beer on the wall, and one bottle more on the wall, and one bottle of beer. " * 200)
    configure(home, OFF.replace('speculation = "off"', 'speculation = "ngram"\nlookup_min = 3\ndraft_tokens = 16'))
    view = home.json("tune", "coder", "--content", str(text), *QUICK)
    ways = by_name(view)
    assert name_of(view["present"]) == "ngram 16 after 3"
    assert ways["ngram 16 after 3"]["tried"] == "measured"
    assert ways["ngram 16 after 3"]["accept_length"] > 1
    others = {name: way for name, way in ways.items() if name.startswith("ngram ") and way["tried"] != "measured"}
    assert others and all(way["predicted"] for way in others.values())
    table = coder_table(home)
    assert {name: table[name] for name in view["chosen"] if name in table} == {
        name: value for name, value in view["chosen"].items() if value is not None and name != "kind"
    }


def test_requests_at_once_are_tuned_for_two_loads_together_and_only_that_key_is_written(home: Home) -> None:
    text = configure(home, OFF.replace("reasoning", "parallel = 1\nreasoning"))
    view = home.json("tune", "coder", "--knob", "parallel", "--concurrency", "2", "--concurrency", "4", *QUICK)
    ways = by_name(view)
    assert set(ways) == {"parallel 1", "parallel 2", "parallel 4"}
    assert {"parallel 1", "parallel 4"} <= {name for name, one in ways.items() if one["tried"] == "measured"}
    run = home.json("bench", "show", str(ways["parallel 1"]["run_ids"][0]))
    assert [cell["cell"]["load"]["concurrency"] for cell in run["run"]["cells"]] == [2, 4]
    assert (view["objective"], view["chosen"]["kind"]) == ("throughput", None)
    chosen = view["chosen"]["parallel"]
    assert chosen in (1, 2, 4)  # which is fastest is the machine's affair
    assert coder_table(home) == tomllib.loads(text)["service"]["coder"] | {"parallel": chosen}


def test_a_size_that_does_not_start_is_a_result_and_is_not_chosen(home: Home) -> None:
    crash = 'if int(dict(zip(words, words[1:]))["--parallel"]) >= 4: sys.exit("CUDA error: out of memory")'
    server = f'server = "{write_server(home, crash)}"\nparallel = 1\nreasoning'
    configure(home, OFF.replace("reasoning", server))  # from 1 the farthest, 4, is tried next, however fast 1 is
    view = home.json("tune", "coder", "--knob", "parallel", "--concurrency", "4", *QUICK)
    ways = by_name(view)
    assert ways["parallel 4"]["tried"] == "failed"
    assert "rule cuda-out-of-memory" in ways["parallel 4"]["why"]
    assert view["chosen"]["parallel"] in (1, 2)


def test_prompt_tokens_a_step_are_tuned_where_the_engine_chose_them_itself(home: Home) -> None:
    configure(home, OFF)
    view = home.json("tune", "coder", "--knob", "batch_tokens", "--concurrency", "2", *QUICK)
    ways = by_name(view)
    assert (name_of(view["present"]), ways["as it is"]["tried"]) == ("as it is", "measured")
    assert len([one for one in ways.values() if one["tried"] == "measured"]) >= 2
    assert coder_table(home).get("batch_tokens") == view["chosen"]["batch_tokens"]
