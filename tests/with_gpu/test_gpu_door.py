"""The gateway in front of an engine at a GPU's speed, in turns with the engine asked past it."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator

import pytest

from gpu_home import SGLANG, VLLM, Engine, GpuHome, kept

ENGINES = [one for one in (SGLANG, VLLM) if one.is_here]
STREAMS, TURNS = 256, 3
WORDS = ("--pp", "64", "--tg", "128", "--concurrency", str(STREAMS), "--runs", "1", "--json")
pytestmark = pytest.mark.elsewhere(bool(ENGINES), "an unpacked engine (STOKER_SGLANG_SITE, STOKER_VLLM_SITE)")


@pytest.fixture(params=ENGINES, ids=[one.name for one in ENGINES])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GpuHome]:
    """A Stoker with one service that answers 256 requests at once."""
    engine: Engine = request.param
    table = engine.table("crowd").replace("parallel = 8", f"parallel = {STREAMS}")
    with kept(GpuHome(tmp_path_factory.mktemp("door"), engine, table)) as home:
        yield home


def measure(home: GpuHome, *words: str) -> dict[str, float]:
    """Returns the medians of a run of many streams."""
    done = home.run("bench", "crowd", *WORDS, *words, code=None)
    [cell] = json.loads(done.stdout)["cells"]
    assert cell["failed"] == 0, cell
    found = {one["name"]: one["median"] for one in cell["figures"]}
    found["warnings"] = len(cell["warnings"])
    return found


def test_nothing_of_an_engines_rate_is_lost_in_the_gateway(home: GpuHome) -> None:
    home.bring_up("crowd")
    home.limit_s = 600.0
    measure(home)
    turns = []
    for _ in range(TURNS):
        through, direct = measure(home), measure(home, "--direct")
        turns.append((through, direct))
        home.note("door", "crowd", streams=STREAMS, through=through, direct=direct)
    kept_share = statistics.median(one["total_decode_tps"] / other["total_decode_tps"] for one, other in turns)
    assert kept_share > 0.98
