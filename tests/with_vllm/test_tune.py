"""Tuning the real vLLM on the processor, with a draft model of its own."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from stoker.box import LocalBox
from stoker.facts.machine.memory import read_memory
from stoker.records import GIB, State
from vllm_home import DEMO, EAGER, MODULE, PYTHON, VllmHome, write_service

DRAFT = DEMO.with_name("hf-draft")
BARELY_BYTES = int(2.62 * GIB)  # what the demo model takes with a cache of some 16,000 tokens
DRAFTS = f'speculation = "draft"\ndraft = "{DRAFT}"\ndraft_tokens = 2\n{EAGER}'
pytestmark = pytest.mark.elsewhere(bool(PYTHON), "the vLLM that `make test-engines` makes")


@pytest.fixture
def vllm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmHome]:
    """A Stoker with one service that drafts."""
    home = VllmHome(tmp_path_factory.mktemp("vllm"))
    home.limit_s = 900.0
    home.configure(write_service("guessing", MODULE, DRAFTS))
    yield home
    home.leaders |= {one.pid for one in home.daemon.status().services if one.pid}
    assert home.end() == {}


def read_draft_table(file: Path) -> dict[str, object]:
    """What stoker.toml says of how it drafts."""
    table = tomllib.loads(file.read_text())["service"]["guessing"]
    return {name: table[name] for name in ("speculation", "draft", "draft_tokens") if name in table}


def test_one_start_with_eight_draft_tokens_predicts_all_others_and_the_choice_is_written(vllm: VllmHome) -> None:
    vllm.bring_up("guessing")
    words = ("--content", "code", "--budget", "30m", "--measure", "6s", "--precision", "20%", "--pp", "64", "--tg", "64")
    view = vllm.json("tune", "guessing", *words)
    ways = {(one["way"]["kind"], one["way"]["draft_tokens"]): one for one in view["ways"] if not one["way"]["lookup_min"]}
    assert view["sweep_starts"] == 23
    assert 2 * view["starts"] <= view["sweep_starts"] + 1  # after a sweep the best is started once more
    for way in (("draft", 2), ("off", None), ("draft", 8)):
        assert ways[way]["tried"] == "measured", ways[way]["why"]
    assert 1 < ways["draft", 2]["accept_length"] <= 3
    assert ways["draft", 2]["accept_length"] <= ways["draft", 8]["accept_length"] <= 9
    assert all(ways["draft", count]["predicted"] for count in (3, 4, 5, 6, 7))
    chosen = view["chosen"]
    kept = {"speculation": chosen["kind"]}
    kept |= {"draft": str(DRAFT)} if chosen["kind"] == "draft" else {}
    kept |= {"draft_tokens": chosen["draft_tokens"]} if chosen["draft_tokens"] else {}
    assert read_draft_table(vllm.paths.config) == kept
    assert vllm.service("guessing").state is State.READY


LOOKUP = 'speculation = "ngram"\nlookup_min = 2\nlookup_max = 8\ndraft_tokens = 4\n'
TIERS = f'speculation = "draft"\ndraft = "{DRAFT}"\ndraft_tiers = [[1, 1, 4], [2, 4, 1]]\n'


@pytest.mark.parametrize("drafts", [LOOKUP, TIERS], ids=["lookup", "tiers"])
def test_what_tuning_may_write_is_what_the_engine_starts_with(vllm: VllmHome, drafts: str) -> None:
    vllm.configure(write_service("guessing", MODULE, drafts + EAGER))
    vllm.bring_up("guessing")
    assert vllm.service("guessing").state is State.READY
    words = vllm.run("plan", "guessing", "--render", "argv").stdout
    assert ("prompt_lookup_min" if drafts == LOOKUP else "num_speculative_tokens_per_batch_size") in words
    measured = vllm.json("bench", "guessing", "--content", "code", "--pp", "64", "--tg", "64", "--runs", "1")
    assert measured["cells"][0]["speculation"]["verify_steps"] > 0


def test_more_memory_is_tried_upwards_where_the_cache_may_be_short_and_refused_where_it_is_not(vllm: VllmHome) -> None:
    share = round(BARELY_BYTES / read_memory(LocalBox()).total_bytes, 4)
    sizes = f"batch_tokens = 512\nmemory_share = {share}\nflags = {{ enforce-eager = true, dtype = 'float32' }}"
    table = write_service("guessing", MODULE, sizes).replace("parallel = 4", "parallel = 64")
    vllm.configure(table)
    plan = vllm.json("plan", "guessing")["plan"]
    assert plan["kv_tokens"]
    enough = -(-plan["kv_tokens"] // (2 * 64)) + 8  # tokens of each of 64 requests that may fill it
    refused = vllm.run("tune", "guessing", "--knob", "memory_share", "--yes", code=3).stderr
    assert "would not make guessing faster for this load" in refused
    assert not vllm.daemon_answers
    load = ("--concurrency", "64", "--pp", str(enough - 8), "--tg", "8", "--measure", "5s", "--yes")
    view = vllm.json("tune", "guessing", "--knob", "memory_share", *load)
    tried = [one["way"]["memory_share"] for one in view["ways"] if one["tried"] == "measured"]
    assert tried[:2] == [share, round(share + 0.05, 2)]  # one step after the other
    told = re.findall(r"'gpu_memory_utilization': ([\d.]+)", vllm.paths.engine_log("guessing").read_text())
    assert set(map(float, told)) == set(tried)
    written = tomllib.loads(vllm.paths.config.read_text())["service"]["guessing"]["memory_share"]
    assert written == view["chosen"]["memory_share"]


def test_two_loads_are_tuned_together(vllm: VllmHome) -> None:
    loads = ("--objective", "throughput", "--concurrency", "1", "--concurrency", "4")
    view = vllm.json("tune", "guessing", *loads, "--measure", "6s", "--precision", "20%", "--pp", "64", "--tg", "64")
    [off] = [one for one in view["ways"] if one["way"]["kind"] == "off"]
    run = vllm.json("bench", "show", str(off["run_ids"][0]))
    assert [cell["cell"]["load"]["concurrency"] for cell in run["run"]["cells"]] == [1, 4]
    assert 2 * view["starts"] <= view["sweep_starts"] + 1  # after a sweep the best is started once more
    assert view["chosen"] is not None
