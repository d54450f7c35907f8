"""The real llama.cpp with the demo model: alone, with its draft model, and with n-grams; its own counters are the judge."""

from __future__ import annotations

import urllib.request
from itertools import zip_longest
from pathlib import Path

import pytest

from bench_seen import figures, run_bench
from embedded_engine import ALIAS, embedded_engine
from home import Home
from stoker.counters import Counters, read_counters
from stoker.records import BenchLoad, Target
from support import DEMO_DRAFT

DRAFT = ("--spec-type", "draft-simple", "--spec-draft-model", str(DEMO_DRAFT), "--spec-draft-n-max", "3")
NGRAM = ("--spec-type", "ngram-simple")


def counters(url: str) -> Counters:
    """Returns what the engine itself has counted."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as page:  # noqa: S310
        found = read_counters(page.read().decode())
    assert found is not None
    return found


def test_the_demo_through_the_gateway_is_measured(demo: Home) -> None:
    run = demo.json("bench", "demo", "--pp", "96", "--tg", "16", "--concurrency", "1", "2", "--runs", "1")
    assert [(cell["failed"], cell["counted_by"], cell["warnings"]) for cell in run["cells"]] == [(0, ["usage"], [])] * 2
    assert (run["subject"]["service"], run["subject"]["engine"], run["subject"]["url"]) == (
        "demo", "llamacpp", f"{demo.daemon.url}/v1",
    )  # fmt: skip
    assert "--model" in run["subject"]["flags"]
    requests = run["cells"][1]["repeats"][0]["requests"]
    assert [(one["prompt_tokens"], one["output_tokens"]) for one in requests] == [(96, 16)] * 2
    key = demo.paths.engine_key_file.read_text().strip()
    assert key not in str(run)


def test_past_the_gateway_is_the_engine_itself(demo: Home) -> None:
    run = demo.json("bench", "demo", "--direct", "--pp", "64", "--tg", "8", "--runs", "1")
    assert run["subject"]["url"] == f"{demo.service('demo').address}/v1"
    assert run["cells"][0]["failed"] == 0


@pytest.mark.parametrize("content", ["code", "prose", "chat"])
def test_prompts_are_exactly_as_long_as_asked(demo: Home, content: str) -> None:
    words = ("--pp", "200", "--tg", "4", "--depth", "0", "150", "--concurrency", "2", "--runs", "1", "--content", content)
    run = demo.json("bench", "demo", *words)
    told = [[one["prompt_tokens"] for one in cell["repeats"][0]["requests"]] for cell in run["cells"]]
    assert told == [[200, 200], [350, 350]]


@pytest.mark.parametrize("words", [DRAFT, NGRAM], ids=["draft", "ngram"])
def test_accept_figures_are_exactly_the_engines_own(words: tuple[str, ...], tmp_path: Path) -> None:
    repeating = tmp_path / "repeating.txt"  # so that n-grams are met again
    repeating.write_text("\n\n".join(["One two three four five six seven eight nine ten. " * 6] * 5))
    before: list[Counters] = []
    with embedded_engine(*words) as url:

        def look(text: str) -> None:
            if text.startswith("run"):  # the warm-up is over, and the prompts are only tokenized after it
                before.append(counters(url))

        load = BenchLoad("closed", 2)
        run = run_bench(
            Target(f"{url}/v1", ALIAS), prompts=(256,), new=200, loads=(load,), content=str(repeating), runs=1, tell=look
        )
        grown = counters(url).since(before[0])
        positions = [now - then for then, now in zip_longest(before[0].by_position, counters(url).by_position, fillvalue=0)]
    [cell] = run.cells
    told = cell.speculation
    assert told is not None
    assert cell.failed == 0
    assert (told.draft_tokens, told.accepted_tokens, told.verify_steps) == (
        grown["draft_tokens_total"], grown["accepted_tokens_total"], grown["drafts_total"],
    )  # fmt: skip
    assert told.draft_tokens
    assert told.accept_rate == grown["accepted_tokens_total"] / grown["draft_tokens_total"]
    assert told.accept_length == 1 + grown["accepted_tokens_total"] / grown["drafts_total"]
    assert told.accept_rate_by_position == tuple(one / grown["drafts_total"] for one in positions)
    assert (figures(run)["accept_rate"], figures(run)["accept_length"]) == (told.accept_rate, told.accept_length)
    assert grown["generated_tokens_total"] == 400


def test_an_engine_that_does_not_speculate_has_no_accept_figures() -> None:
    with embedded_engine() as url:
        cell = run_bench(Target(f"{url}/v1", ALIAS), prompts=(64,), new=8, runs=1).cells[0]
    assert (cell.speculation, cell.warnings) == (None, ())
