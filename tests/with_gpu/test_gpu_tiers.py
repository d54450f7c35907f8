"""Tuning a real SGLang for one request and for many: numbers of draft tokens for each, as a table it is started with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from gpu_home import MODELS, SGLANG, GpuHome, kept
from heavy_model import write_heavy
from stoker.config import read_config
from stoker.engines.sglang import TIERS_FLAG

HEAD, MANY = "eagle3", 64
# So much to compute with each token that many requests' drafts are not free: of 24 GB a step for one request waits for the
# memory, and one of 64 with 6 drafts each for the arithmetic.
PARAMETERS = 12 * 10**9
DRAFTS = f'speculation = "{HEAD}"\ndraft = "{MODELS}/hf-{HEAD}"\ndraft_tokens = 6\nbatch_tokens = 256'
WORDS = ("--only", HEAD, "--objective", "throughput", "--concurrency", "1", "--concurrency", str(MANY), "--content", "code",
         "--pp", "128", "--tg", "256", "--measure", "15s", "--budget", "10m", "--yes")  # fmt: skip
pytestmark = [
    pytest.mark.elsewhere(SGLANG.is_here, "an unpacked SGLang (STOKER_SGLANG_SITE)"),
    pytest.mark.long,
]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[GpuHome]:
    """A Stoker with one service for many requests, that drafts the same number of tokens for each."""
    engine = SGLANG.beside_others._replace(more="memory_share = 0.6")
    model = write_heavy(tmp_path / "heavy", MODELS / "hf", PARAMETERS)
    table = engine.table("coder", DRAFTS, model=model).replace("parallel = 8", f"parallel = {MANY}")
    with kept(GpuHome(tmp_path, engine, table)) as home:
        yield home


def test_what_is_best_for_one_and_for_many_is_written_as_a_table_and_started(home: GpuHome) -> None:
    home.bring_up("coder")
    home.limit_s = 1200.0
    view = home.json("tune", "coder", *WORDS)
    ways = [(one["way"], one["tried"], (one["measured"] or {}).get("tok_s"), one["predicted"]) for one in view["ways"]]
    told = {"starts": view["starts"], "sweep": view["sweep_starts"], "loads": (1, MANY)}
    home.note("tiers", "coder", chosen=view["chosen"], ways=ways, **told)
    assert 2 * view["starts"] <= view["sweep_starts"]
    tiers = view["chosen"]["draft_tiers"]
    assert [ranges[:2] for ranges in tiers] == [[1, 8], [9, MANY]]
    assert tiers[0][2] > tiers[1][2]
    written = read_config(home.paths.config).services["coder"].draft_tiers
    assert written is not None
    assert [list(one) for one in written] == tiers
    pid = home.service("coder").pid
    assert pid is not None
    argv = psutil.Process(pid).cmdline()
    read = json.loads(Path(argv[argv.index(TIERS_FLAG) + 1]).read_text())
    assert {first: read[str(first)]["candidate_steps"] for first, _, _ in tiers} == {one[0]: [one[2]] for one in tiers}
