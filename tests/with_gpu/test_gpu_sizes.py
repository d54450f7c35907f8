"""Tuning the size of real engines that only a GPU has: the largest batch with graphs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from gpu_home import SGLANG, VLLM, Engine, GpuHome, kept
from stoker.config import read_config
from stoker.engines import find

ENGINES = [one for one in (SGLANG, VLLM) if one.is_here]
AT_ONCE = 8
WORDS = ("--concurrency", str(AT_ONCE), "--content", "code", "--pp", "128", "--tg", "128", "--measure", "10s", "--yes")
# So little that eight at once have no graph: the engine launches each kernel by itself, which the small model waits for.
FEW = f"graph_batch = 1\nparallel = {AT_ONCE}"
pytestmark = [
    pytest.mark.elsewhere(bool(ENGINES), "an unpacked engine (STOKER_SGLANG_SITE, STOKER_VLLM_SITE)"),
    pytest.mark.long,
]


@pytest.fixture(params=ENGINES, ids=[one.name for one in ENGINES])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GpuHome]:
    """A Stoker with one service for eight requests at once, that has graphs for one."""
    engine: Engine = request.param
    table = engine.table("crowd").replace(f"parallel = {AT_ONCE}", FEW)
    with kept(GpuHome(tmp_path_factory.mktemp("sizes"), engine, table)) as home:
        home.bring_up("crowd")
        yield home


def tune(home: GpuHome, knob: str) -> dict[str, Any]:
    """Returns what tuning a size found; it is in stoker.toml now, and the service was told it."""
    home.limit_s = 1200.0
    view: dict[str, Any] = home.json("tune", "crowd", "--knob", knob, *WORDS)
    ways = [(one["way"][knob], one["tried"], (one["measured"] or {}).get("tok_s"), one["why"]) for one in view["ways"]]
    home.note("size", knob, chosen=view["chosen"], starts=view["starts"], sweep=view["sweep_starts"], ways=ways)
    assert 2 * view["starts"] <= view["sweep_starts"] + 1
    chosen = view["chosen"][knob]
    assert (getattr(read_config(home.paths.config).services["crowd"], knob) or view["present"][knob]) == chosen
    assert told(home, knob) == chosen
    return view


def told(home: GpuHome, knob: str) -> float:
    """Returns the size that the running engine was told."""
    pid = home.service("crowd").pid
    assert pid is not None
    argv = psutil.Process(pid).cmdline()
    return float(next(argv[argv.index(flag) + 1] for flag in find(home.engine.name).spelling[knob] if flag in argv))


def test_a_batch_without_graphs_is_found_and_given_them(home: GpuHome) -> None:
    view = tune(home, "graph_batch")
    rates = {one["way"]["graph_batch"]: one["measured"]["tok_s"] for one in view["ways"] if one["measured"]}
    assert view["chosen"]["graph_batch"] >= AT_ONCE
    refused = home.run("tune", "crowd", "--knob", "memory_share", *WORDS, code=3).stderr
    assert "would not make crowd faster for this load" in refused  # what is asked is a thousandth of the cache
    assert rates[view["chosen"]["graph_batch"]] > rates[1]
