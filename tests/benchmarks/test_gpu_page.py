"""The page of GPU runs: what a note of each kind becomes."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from benchmarks.gpu.notes import read_notes
from benchmarks.gpu.page import main, render
from benchmarks.gpu.run import GpuRun, keep, look, say

from stoker.facts.machine.nvidia import read_nvidia

ENGINE = {"engine": "vllm", "version": "0.26.0", "name": "crowd"}


def beside(side: str, token_s: float, rates: Sequence[float] = (900.0, 1100.0)) -> dict[str, Any]:
    """Returns a note of two repeats of two streams."""
    figures = {
        "total_e2e_tps": rates, "ttft_s": [0.1, 0.05, 0.3, 0.2], "itl_chunk_s": [0.01] * 4,
        "itl_token_s": [token_s] * 3 + [2 * token_s], "chunk_gap_p99_s": [0.02, 0.04],
    }  # fmt: skip
    return {**ENGINE, "what": "beside", "streams": 2, "side": side, "figures": figures}


def notes_of(folder: Path, *notes: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns what is read of notes that a run kept."""
    (folder / "results.jsonl").write_text("".join(f"{json.dumps(note)}\n" for note in notes))
    return read_notes(folder / "results.jsonl")


def test_two_sides_of_a_gateway_are_told_with_their_p99_and_what_a_stream_kept(tmp_path: Path) -> None:
    kept = {**ENGINE, "what": "kept", "ratio": 0.996, "between": [0.981, 1.012]}
    notes = [beside("through", 0.004), beside("direct", 0.005), kept]
    page = render(notes_of(tmp_path, *notes), "a card")
    assert "| vllm | 2 | through, both at once | 2 | 1,000 | 900 to 1,100 | 200 | 150.0 | 10.0 | 30.0 | 4.0 |" in page
    assert "| vllm | 2 | direct, both at once | 2 | 1,000 | 900 to 1,100 | 200 | 150.0 | 10.0 | 30.0 | 5.0 |" in page
    assert "through the gateway had 99.6 % (98.1 to 101.2 %) of the decode rate of one beside it" in page
    assert "all streams through it together had 100.0 % of the rate of those beside it" in page


def test_all_streams_of_a_repeat_are_compared_with_those_that_began_with_them(tmp_path: Path) -> None:
    kept = {**ENGINE, "what": "kept", "ratio": 1.0, "between": None}
    notes = [beside("through", 0.004, (99.0, 402.0, 50.0)), beside("direct", 0.005, (100.0, 400.0, 50.0)), kept]
    page = render(notes_of(tmp_path, *notes), "a card")
    # The mean of ln 0.99, ln 1.005 and 0 is -0.00169, their deviation 0.00766, and t of two degrees of freedom 4.303.
    assert "had 99.8 % (97.9 to 101.7 %) of the rate of those beside it" in page


def test_turns_through_the_gateway_are_compared_with_those_that_followed(tmp_path: Path) -> None:
    notes = [
        {**beside("through", 0.004, (90.0, 50.0)), "what": "door"},
        {**beside("direct", 0.005, (100.0, 45.0)), "what": "door"},
    ]
    page = render(notes_of(tmp_path, *notes), "a card")
    assert "had 100.0 % of the rate of those past it, turn by turn" in page


def test_what_a_token_costs_the_engines_server_is_compared_turn_by_turn(tmp_path: Path) -> None:
    sides = {"through": ((101.0, 99.0, 103.0), (25.0, 27.0, 26.0)), "direct": ((100.0, 100.0, 100.0), (0.1, 0.0, 0.0))}
    notes = []
    for side, (server_us, gateway_us) in sides.items():
        note = {**beside(side, 0.004, (90.0, 50.0, 80.0)), "what": "door"}
        notes.append({**note, "figures": note["figures"] | {"server_us_token": server_us, "gateway_us_token": gateway_us}})
    page = render(notes_of(tmp_path, *notes), "a card")
    assert "30.0 | 4.0 | 101.0 | 26.0 |\n" in page
    assert "30.0 | 4.0 | 100.0 | 0.0 |\n" in page
    # The mean of ln 1.01, ln 0.99 and ln 1.03 is 0.00982, their deviation 0.01981, and t again 4.303.
    assert "vllm: a token through it took 101.0 % (96.1 to 106.1 %) of the processor time" in page


def test_one_request_at_a_time_is_told_apart_from_many(tmp_path: Path) -> None:
    alone = [{**beside(side, 0.004), "what": "alone", "streams": 1} for side in ("through", "direct")]
    notes = [beside("through", 0.004), beside("direct", 0.005), *alone]
    page = render(notes_of(tmp_path, *notes), "a card")
    assert "| vllm | 1 | direct, in turns | 2 |" in page
    assert "| vllm | 2 | direct, both at once | 2 |" in page


def test_a_way_is_told_once_and_turns_each_by_themselves(tmp_path: Path) -> None:
    swept = [{**ENGINE, "what": "sweep", "way": "off", "tok_s": tok_s, "rounds": 6} for tok_s in (500.0, 510.0)]
    told = {"accept_rate": 0.625, "accept_length": 3.5}
    swept.append({**ENGINE, "what": "sweep", "way": "eagle3 4", "tok_s": 700.0, "rounds": 24, **told})
    turns = {
        **ENGINE,
        "what": "turns",
        "chosen": "eagle3 4",
        "best": "eagle3 5",
        "tok_s": [[90.0, 100.0], [80.0, 0.0], [90.0, 100.0]],
    }
    page = render(notes_of(tmp_path, *swept, turns), "a card")
    assert "| vllm | off | 6 | 510 | - | - |" in page
    assert "| vllm | eagle3 4 | 24 | 700 | 62 % | 3.50 |" in page
    assert "| 500 |" not in page
    assert (
        "side by side the choice, *eagle3 4*, had 90 % of its rate, in 2 rounds; from one to the next it varies by 0%."
        in page
    )


def test_a_size_is_told_with_all_that_was_measured_of_it(tmp_path: Path) -> None:
    ways = [[1, "measured", 900.0, ""], [2, "left", None, ""], [8, "measured", 3600.0, ""]]
    size = {
        **ENGINE,
        "what": "size",
        "name": "graph_batch",
        "chosen": {"graph_batch": 8},
        "starts": 1,
        "sweep": 4,
        "ways": ways,
    }
    page = render(notes_of(tmp_path, size), "a card")
    assert (
        "`stoker tune --knob graph_batch` chose 8, starts: 1 of 4. It measured 900 tok/s with 1, 3600 tok/s with 8." in page
    )


def test_a_table_for_two_loads_is_told_with_the_loads_and_what_it_was_better_than(tmp_path: Path) -> None:
    six = {"kind": "eagle3", "draft_tokens": 6}
    table = {**six, "draft_tiers": [[1, 8, 6], [9, 64, 3]]}
    ways = [[six, "measured", 1100.0, None], [table, "measured", 1300.0, None]]
    tiers = {**ENGINE, "what": "tiers", "chosen": table, "starts": 2, "sweep": 8, "loads": [1, 64], "ways": ways}
    page = render(notes_of(tmp_path, tiers), "a card")
    assert "`stoker tune` for 1 and 64 requests chose *eagle3 6 up to 8, 3 up to 64* with 2 starts, where all" in page
    assert "where all ways would take 8 and one more. It measured" in page
    assert "It measured eagle3 6 1100 tok/s, eagle3 6 up to 8, 3 up to 64 1300 tok/s." in page


def test_what_a_kill_left_behind_is_told_with_what_came_when(tmp_path: Path) -> None:
    back = {
        **ENGINE, "what": "memory back", "held_bytes": 70 * 2**30, "held_host_bytes": 3 * 2**29, "host_back_s": 0.31,
        "card_back_s": 0.25, "settled_s": 0.4, "next_start_s": 1.5,
    }  # fmt: skip
    ends = [
        {"name": "while it answers", "ready_again_s": 61.25},
        {"name": "while it loads", "failed_s": 0.5, "why": "killed"},
    ]
    lines = [back, *({**ENGINE, "what": "killed", **end} for end in ends)]
    page = render(notes_of(tmp_path, *lines), "a card")
    assert "all of the 70.0 GiB on the card were back after 0.25 s, the 1.5 GiB of the host's after 0.31 s;" in page
    assert "took both for back after 0.40 s, and its next start began after 1.50 s." in page
    assert "- vllm, `kill -9` while it answers: READY again after 61.2 s.\n" in page
    assert "- vllm, `kill -9` while it loads: FAILED after 0.50 s: killed.\n" in page


def test_a_choice_that_was_the_best_was_measured_against_nothing(tmp_path: Path) -> None:
    turns = {**ENGINE, "what": "turns", "chosen": "eagle3 5", "best": "eagle3 5", "tok_s": []}
    page = render(notes_of(tmp_path, turns), "a card")
    assert "vllm: the choice, *eagle3 5*, was the sweep's best." in page
    assert "%" not in page.split("### Lengths of a chain")[1]


def test_a_plan_and_what_was_verified_are_told(tmp_path: Path) -> None:
    plan = {**ENGINE, "what": "plan", "name": "plain", "gpu": "NVIDIA H200", "left_out": ["$MAX_JOBS", "--a"]}
    lint = {**ENGINE, "what": "lint", "name": "plain", "on_gb10": ["rule-a", "rule-b"]}
    verify = {**ENGINE, "what": "verify", "name": "plain", "verdicts": {"answers": "pass", "tools": "fail"}}
    plain = {**verify, "name": "other", "left": "it stopped after 3 of 9 tokens"}
    page = render(notes_of(tmp_path, plan, lint, verify, plain), "a card")
    assert page.count("- vllm, a client that leaves a stream: it stopped after 3 of 9 tokens.\n") == 1
    assert "- vllm, planned for NVIDIA H200: without $MAX_JOBS, --a, which a GB10's plan has.\n" in page
    assert "- vllm, a launch that `stoker lint` warns of on a GB10, and not here: rule-a, rule-b.\n" in page
    assert "- vllm, `stoker verify plain`: answers pass, tools fail.\n" in page


def test_a_page_begins_with_what_the_run_was_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes_of(tmp_path, {**ENGINE, "what": "orphan", "processes": 2})
    versions = {"sglang": "0.5.16", "vllm": "0.26.0"}
    run = GpuRun("2026-11-28", ("NVIDIA H200", "NVIDIA H200"), "570.86", 32, "2.11.0", versions, "d814dd03")
    keep(run, tmp_path)
    monkeypatch.setattr("sys.argv", ["gpu_page", str(tmp_path)])
    main()
    first = "2026-11-28, 2 NVIDIA H200, driver 570.86, torch 2.11.0, 32 cores; sglang 0.5.16, vllm 0.26.0; commit d814dd03."
    assert (tmp_path / "page.md").read_text().startswith(f"{first}\n\n### ")
    results = json.loads((tmp_path / "results.json").read_text())
    assert (results["run"]["commit"], [note["processes"] for note in results["notes"]]) == ("d814dd03", [2])


def test_a_run_is_of_what_is_installed_here_and_of_this_commit(tmp_path: Path) -> None:
    (tmp_path / "sglang-9.8.7.dist-info").mkdir()
    (tmp_path / "sglang-9.8.7.dist-info" / "METADATA").write_text("Name: sglang\nVersion: 9.8.7\n")
    run = look(sys.executable, {"sglang": str(tmp_path)})
    assert (run.engines, run.gpus) == ({"sglang": "9.8.7"}, tuple(gpu.name for gpu in read_nvidia().gpus))
    assert run.commit is None or re.fullmatch("[0-9a-f]{8,}", run.commit)
    assert say(run).startswith(f"{run.day}, ")
