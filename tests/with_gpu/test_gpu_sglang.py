"""The real SGLang on a GPU: plain and with every way to draft."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpu_drafts import check_measured_as_counted, check_same_words, say_alone
from gpu_home import MODELS, SGLANG, GpuHome, Said, check_plain, kept

EAGLE, EAGLE3 = (f'speculation = "{kind}"\ndraft = "{MODELS}/hf-{kind}"\n' for kind in ("eagle", "eagle3"))
DRAFTS = {
    "ngram": 'speculation = "ngram"\ndraft_tokens = 8',
    "standalone": f'speculation = "draft"\ndraft = "{MODELS}/hf-draft"\ndraft_tokens = 4',
    "eagle": f"{EAGLE}draft_tokens = 4",
    "eagle-tree": f"{EAGLE}draft_steps = 4\ndraft_topk = 4\ndraft_tokens = 12",
    "eagle3": f"{EAGLE3}draft_tokens = 4",
    "eagle3-tiers": f"{EAGLE3}draft_tiers = [[1, 1, 4], [2, 8, 1]]",
    "eagle3-tree": f"{EAGLE3}draft_steps = 4\ndraft_topk = 4\ndraft_tokens = 12",
}
pytestmark = pytest.mark.elsewhere(SGLANG.is_here, "an unpacked SGLang (STOKER_SGLANG_SITE)")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GpuHome]:
    """A Stoker with a service for each way to draft, one of which runs at a time."""
    engine = SGLANG.beside_others
    tables = [engine.table(name, f'{more}\ngroup = "one"') for name, more in {"plain": "", **DRAFTS}.items()]
    with kept(GpuHome(tmp_path_factory.mktemp("sglang"), engine, "".join(tables))) as home:
        yield home


@pytest.fixture(scope="module")
def plain(home: GpuHome, tmp_path_factory: pytest.TempPathFactory) -> list[Said]:
    """What the model says without drafts."""
    return say_alone(home, tmp_path_factory)


def test_its_start_is_told_in_stages_and_it_is_verified_and_measured(home: GpuHome, plain: list[Said]) -> None:
    assert len(plain) == 200
    home.bring_up("plain")
    assert {"import", "weights", "graphs"} <= set(home.stages("plain"))
    check_plain(home)


def test_the_model_alone_says_the_same_again(home: GpuHome, plain: list[Said]) -> None:
    home.json("up", "plain")
    check_same_words(home, "plain", plain, home.say_greedily("plain"))


@pytest.mark.parametrize("way", DRAFTS)
def test_a_way_to_draft_says_the_same_and_is_measured_as_it_counts_itself(
    home: GpuHome, tmp_path_factory: pytest.TempPathFactory, way: str
) -> None:
    home.run("down")
    home.bring_up(way)
    try:
        check_measured_as_counted(home, way)
        guessed = home.say_greedily(way)
    finally:
        home.run("down", way)
    check_same_words(home, way, say_alone(home, tmp_path_factory), guessed)
