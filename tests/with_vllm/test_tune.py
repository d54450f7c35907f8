"""Tuning the real vLLM on the processor, with a draft model of its own."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from stoker.records import State
from vllm_home import DEMO, EAGER, MODULE, PYTHON, VllmHome, write_service

DRAFT = DEMO.with_name("hf-draft")
DRAFTS = f'speculation = "draft"\ndraft = "{DRAFT}"\ndraft_tokens = 2\n{EAGER}'
pytestmark = pytest.mark.elsewhere(bool(PYTHON), "the vLLM that `make test-engines` makes")


@pytest.fixture
def vllm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmHome]:
    """A Stoker with one service that drafts, and is up."""
    home = VllmHome(tmp_path_factory.mktemp("vllm"))
    home.limit_s = 900.0
    home.configure(write_service("guessing", MODULE, DRAFTS))
    home.bring_up("guessing")
    yield home
    home.leaders |= {one.pid for one in home.daemon.status().services if one.pid}
    assert home.end() == {}


def read_draft_table(file: Path) -> dict[str, object]:
    """What stoker.toml says of how it drafts."""
    table = tomllib.loads(file.read_text())["service"]["guessing"]
    return {name: table[name] for name in ("speculation", "draft", "draft_tokens") if name in table}


def test_one_start_with_eight_draft_tokens_predicts_all_others_and_the_choice_is_written(vllm: VllmHome) -> None:
    words = ("--content", "code", "--budget", "30m", "--measure", "6s", "--precision", "20%", "--pp", "64", "--tg", "64")
    view = vllm.json("tune", "guessing", *words)
    ways = {(one["way"]["kind"], one["way"]["draft_tokens"]): one for one in view["ways"]}
    assert view["sweep_starts"] == 17
    assert 2 * view["starts"] <= view["sweep_starts"]
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
