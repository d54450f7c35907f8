"""Tuning real engines on a GPU, and beside it trying every length of a chain: the choice is as good, with fewer starts."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from gpu_home import MODELS, SGLANG, VLLM, Engine, GpuHome, kept
from stoker.config import read_config
from stoker.flows.tunable import Tunable, read_tunable
from stoker.flows.tune_trying import Asking, Talk, Trier
from stoker.flows.up import ensure_daemon
from stoker.records import Sighting, Way
from stoker.tune.ratios import rate_of

ENGINES = [one for one in (SGLANG, VLLM) if one.is_here]
HEAD = "eagle3"
# One chain alone, so that all of it can be swept beside; off is among its ways.
WORDS = ("--only", HEAD, "--content", "code", "--measure", "6s", "--pp", "128", "--tg", "256", "--budget", "20m", "--yes")
TURNS, NEAR = 2, 0.03
pytestmark = pytest.mark.elsewhere(bool(ENGINES), "an unpacked engine (STOKER_SGLANG_SITE, STOKER_VLLM_SITE)")


@pytest.fixture(params=ENGINES, ids=[one.name for one in ENGINES])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GpuHome]:
    """A Stoker with one service that has a head to draft with."""
    engine: Engine = request.param
    table = engine.table("coder", f'speculation = "{HEAD}"\ndraft = "{MODELS}/hf-{HEAD}"\ndraft_tokens = 6')
    with kept(GpuHome(tmp_path_factory.mktemp("tune"), engine, table)) as home:
        yield home


def make_trier(home: GpuHome, monkeypatch: pytest.MonkeyPatch) -> tuple[Trier, Tunable]:
    """Returns what starts a way and measures it, as tuning does, and the ways that there are."""
    for name in ("STOKER_STATE", "STOKER_CONFIG"):
        monkeypatch.setenv(name, home.environment[name])
    config = read_config(home.paths.config)
    asking = Asking(contents=("code",), measure_s=6.0, prompt_tokens=128, new_tokens=256, fresh=True)
    talk = Talk(lambda _: None, lambda _: None)
    tunable = read_tunable("coder", config, only=(HEAD,))
    return Trier(home.paths, config, ensure_daemon(home.paths), tunable, asking, talk), tunable


def rate(trier: Trier, way: Way) -> float:
    """Returns the rate of a way, after a start of its own."""
    found = trier.try_way(way)
    assert isinstance(found, Sighting), found
    return rate_of(found)


def sweep(home: GpuHome, trier: Trier, ways: tuple[Way, ...]) -> dict[Way, float]:
    """Returns the rates of all ways; each is noted as soon as it is known."""
    found = {}
    for way in ways:
        found[way] = rate(trier, way)
        home.note("sweep", "coder", way=way.name, tok_s=found[way])
    return found


def tune(home: GpuHome) -> tuple[Way, dict[str, float]]:
    """Returns what tuning chose, with half of the starts, and the rates that it measured."""
    home.limit_s = 1200.0
    view = home.json("tune", "coder", *WORDS)
    ways = [(one["way"], one["tried"], (one["measured"] or {}).get("tok_s"), one["predicted"]) for one in view["ways"]]
    home.note("tune", "coder", chosen=view["chosen"], starts=view["starts"], sweep=view["sweep_starts"], ways=ways)
    assert 2 * view["starts"] <= view["sweep_starts"]
    return Way(**view["chosen"]), {Way(**way).name: tok_s for way, _, tok_s, _ in ways if tok_s is not None}


@pytest.mark.alone
def test_tuning_finds_a_length_that_is_faster_than_none(home: GpuHome) -> None:
    home.bring_up("coder")
    chosen, rates = tune(home)
    assert rates[chosen.name] > rates["off"]
    wish = read_config(home.paths.config).services["coder"]
    assert (wish.speculation, wish.draft_tokens) == (HEAD, chosen.draft_tokens)


@pytest.mark.long
def test_the_choice_is_near_the_best_of_all_lengths_with_half_of_the_starts(
    home: GpuHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.bring_up("coder")
    trier, tunable = make_trier(home, monkeypatch)  # by the file as it is now: a choice without a head leaves the head out
    chosen, _ = tune(home)
    swept = sweep(home, trier, tuple(way for family in tunable.families for way in family.ways))
    best = max(swept, key=swept.__getitem__)
    is_near = swept[chosen] >= (1 - NEAR) * swept[best]
    turns = [] if is_near else [(rate(trier, chosen), rate(trier, best)) for _ in range(TURNS)]
    home.note("turns", "coder", chosen=chosen.name, best=best.name, swept=[swept[chosen], swept[best]], tok_s=turns)
    chosen_tok_s, best_tok_s = (math.prod(side) for side in zip(*turns, strict=True)) if turns else (1.0, 1.0)
    assert chosen_tok_s > (1 - NEAR) ** len(turns) * best_tok_s
