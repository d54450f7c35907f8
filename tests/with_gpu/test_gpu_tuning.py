"""Tuning real engines on a GPU, and all lengths of a chain side by side: the choice is as good, with fewer starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from benchmarks.tuning_fleet import Sweep, ask_in_turn, mean, meet_way
from benchmarks.tuning_page import NEAR

from gpu_home import MODELS, SGLANG, VLLM, Engine, GpuHome, kept
from heavy_model import write_heavy
from home import wait_for
from stoker.bench.speculation import speculation_between
from stoker.config import read_config
from stoker.counters import Counters
from stoker.flows.tunable import read_tunable
from stoker.flows.tune_asking import Asking
from stoker.records import Way

ENGINES = [one for one in (SGLANG, VLLM) if one.is_here]
HEAD, HEAVY = "eagle3", "heavy"
DRAFT = f'draft = "{MODELS}/hf-{HEAD}"'
# One chain alone, so that all of it can be swept beside; off is among its ways. Beside what runs, as who uses it would.
WORDS = ("--only", HEAD, "--beside", "--content", "code", "--pp", "128", "--tg", "256", "--budget", "20m", "--yes")
MEASURE = "10s"  # and up to three times as long where ways are near
# Of 8 GB in each engine's own numbers, so that a step takes what reading them takes: the demo model alone waits for the
# processor, and one that others use too changes from request to request by a quarter (docs/measured/gpu.md). A card holds 7.
PARAMETERS = {"vllm": 2 * 10**9, "sglang": 4 * 10**9}
# So wide a layer needs much room for each token of a step, and prompts here are short.
FITS_TWICE, NARROW = "memory_share = 0.25", "batch_tokens = 256"
BESIDE = {one.name: one.beside_others for one in ENGINES}
ASKING = Asking(contents=("code",), prompt_tokens=128, new_tokens=256)
ROUNDS = 120
pytestmark = [
    pytest.mark.elsewhere(bool(ENGINES), "an unpacked engine (STOKER_SGLANG_SITE, STOKER_VLLM_SITE)"),
    pytest.mark.alone,
]


@pytest.fixture(params=ENGINES, ids=[one.name for one in ENGINES])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GpuHome]:
    """A Stoker with one service that has a head to draft with."""
    engine: Engine = request.param._replace(more=FITS_TWICE)
    folder = tmp_path_factory.mktemp("tune")
    model = write_heavy(folder / HEAVY, MODELS / "hf", PARAMETERS[engine.name])
    table = engine.table("coder", f'speculation = "{HEAD}"\n{DRAFT}\ndraft_tokens = 4\n{NARROW}', model=model)
    with kept(GpuHome(folder, engine, table)) as home:
        yield home


def tune(home: GpuHome) -> tuple[Way, dict[str, float]]:
    """Returns what tuning chose, with half of the starts, and the rates that it measured."""
    home.limit_s = 1200.0
    view = home.json("tune", "coder", *WORDS, "--measure", MEASURE)
    ways = [(one["way"], one["tried"], (one["measured"] or {}).get("tok_s"), one["predicted"]) for one in view["ways"]]
    home.note("tune", "coder", chosen=view["chosen"], starts=view["starts"], sweep=view["sweep_starts"], ways=ways)
    assert 2 * view["starts"] <= view["sweep_starts"] + 1  # the sweep's best is to be started once more too
    return Way(**view["chosen"]), {Way(**way).name: tok_s for way, _, tok_s, _ in ways if tok_s is not None}


def start_all(
    folder: Path, engine: Engine, model: Path, ways: tuple[Way, ...], stack: ExitStack
) -> dict[Way, tuple[GpuHome, str]]:
    """Returns a Stoker for each way, whose service runs that way; all start at once."""
    homes = {}
    for way in ways:
        name = way.name.replace(" ", "-")
        words = "\n".join(f"{key} = {value!r}" for key, value in way.keys.items())
        own = folder / name
        own.mkdir()
        drafts = "" if way.kind == "off" else DRAFT
        table = engine.table(name, f"{words}\n{drafts}\n{NARROW}", model=model)
        homes[way] = stack.enter_context(kept(GpuHome(own, engine, table))), name
    at_once(lambda one: one[0].bring_up(one[1]), homes)
    return homes


def at_once(ask: Callable[[tuple[GpuHome, str]], object], homes: dict[Way, tuple[GpuHome, str]]) -> None:
    """Asks something of all of them at the same time."""
    with ThreadPoolExecutor(len(homes)) as pool:
        list(pool.map(ask, homes.values()))


def sweep(
    folder: Path, engine: Engine, model: Path, ways: tuple[Way, ...], chosen: Way
) -> tuple[Sweep, dict[Way, dict[str, float]]]:
    """Returns the rates of all ways, which are up at once and asked the same prompts in turn, and what each accepted."""
    with ExitStack() as stack:
        homes = start_all(folder, engine, model, ways, stack)
        with ExitStack() as lines:
            targets = {way: home.target_past_the_gateway(name) for way, (home, name) in homes.items()}
            asked = {way: meet_way(target, engine.name, ASKING, lines) for way, target in targets.items()}
            before = {way: home.counters(name) for way, (home, name) in homes.items()}
            found = Sweep(ask_in_turn(asked, chosen, ROUNDS), 0.0)
            accepted = {way: accepted_since(before[way], home.counters(name), way) for way, (home, name) in homes.items()}
        at_once(lambda one: one[0].run("down"), homes)
    return found, accepted


def accepted_since(before: Counters, after: Counters, way: Way) -> dict[str, float]:
    """Returns the accept_rate and accept_length that an engine counted; nothing without drafts.

    SGLang counts verify calls and what they gave, and each call of a chain is of all its draft tokens.
    """
    seen = speculation_between(before, after)
    if seen is None or seen.accept_length is None:
        return {}
    assert way.draft_tokens is not None
    rate = (seen.accept_length - 1) / way.draft_tokens if seen.accept_rate is None else seen.accept_rate
    return {"accept_rate": rate, "accept_length": seen.accept_length}


def test_the_choice_is_near_the_best_of_all_lengths_with_half_of_the_starts(home: GpuHome, tmp_path: Path) -> None:
    home.bring_up("coder")
    families = read_tunable("coder", read_config(home.paths.config), only=(HEAD,)).families
    chosen, rates = tune(home)
    wish = read_config(home.paths.config).services["coder"]
    assert (wish.speculation, wish.draft_tokens) == (HEAD, chosen.draft_tokens)
    assert rates[chosen.name] > rates["off"]
    ways = tuple(way for family in families for way in family.ways)
    with ThreadPoolExecutor(1) as aside:
        aside.submit(home.run, "down", code=None)  # it waits for the host's memory too, which others take meanwhile
        wait_for("its processes' end", lambda: not home.engines())
        swept, accepted = sweep(tmp_path, BESIDE[home.engine.name], home.folder / HEAVY, ways, chosen)
    for way, each in swept.rates.items():
        home.note("sweep", "coder", way=way.name, tok_s=mean(each), rounds=len(each), **accepted[way])
        assert way.draft_tokens is None or 1 < accepted[way]["accept_length"] <= 1 + way.draft_tokens
    turns = swept.turns(chosen)
    home.note("turns", "coder", chosen=chosen.name, best=swept.best.name, tok_s=turns)
    assert mean([one / best for one, best in turns] or [1.0]) >= 1 - NEAR
