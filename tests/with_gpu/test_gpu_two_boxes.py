"""One model over two boxes, a GPU each: real ranks that meet through NCCL, over the network and nothing else.

The boxes are network namespaces of one machine with two GPUs. NCCL is told that they are two hosts, so that it neither maps
the other's memory nor crosses the bus.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from gpu_home import SGLANG, VLLM, Engine
from home import wait_for
from net_boxes import IN_NAMESPACES, Box, Network
from stoker.facts.machine.nvidia import read_nvidia
from stoker.records import State

ENGINES = [one for one in (VLLM, SGLANG) if one.is_here]
LIMIT_S = 240.0
pytestmark = [
    pytest.mark.elsewhere(bool(ENGINES), "an unpacked engine (STOKER_SGLANG_SITE, STOKER_VLLM_SITE)"),
    pytest.mark.elsewhere(len(read_nvidia().gpus) > 1, "two GPUs"),
    IN_NAMESPACES,
    pytest.mark.long,
]


class Pair(NamedTuple):
    """Two boxes that are joined, and what runs on both."""

    engine: Engine
    a: Box
    b: Box


def write_table(engine: Engine, gpu: int) -> str:
    """Returns the table of the service on the box that has this GPU."""
    own = f'environment = {{ CUDA_VISIBLE_DEVICES = "{gpu}", NCCL_HOSTID = "box-{gpu}", '
    table = engine.table("duo", 'boxes = ["a", "b"]').replace("environment = {", own)
    return table.replace(f'"{VLLM.module}"', '"vllm.entrypoints.cli.main", "serve"')  # the module knows no --headless


@pytest.fixture(scope="module", params=ENGINES, ids=[one.name for one in ENGINES])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two boxes with the same service in both files."""
    net = Network(tmp_path_factory.mktemp("net"))
    found = Pair(request.param, net.add("a"), net.add("b"))
    try:
        for gpu, box in enumerate(found[1:]):
            box.limit_s = LIMIT_S
            box.environment["CUDA_VISIBLE_DEVICES"] = str(gpu)
            box.configure(write_table(found.engine, gpu))
            box.run("status", code=None)
            box.run("up")
            box.run("down", "demo")
        found.a.join(found.b, "--act")
        yield found
    finally:
        left = net.end()
    assert left == {}


def test_both_ranks_answer_as_one_model_over_the_network(pair: Pair) -> None:
    pair.a.json("up", "duo")
    reply = pair.a.chat("duo")
    assert reply.status_code == 200, reply.text
    assert reply.json()["usage"]["completion_tokens"] > 0
    with pair.a.inside():
        view = pair.a.service("duo")
    (rank,) = view.ranks
    assert (rank.rank, rank.box, rank.state) == (1, "b", State.READY)
    log = pair.a.paths.engine_log("duo").read_text()
    assert re.search(r"NET/Socket", log)
    assert "NET/Socket" in (view.transport or "")


def test_a_rank_that_dies_ends_the_whole_which_comes_back(pair: Pair) -> None:
    pair.a.json("up", "duo")
    before = set(pair.a.engines()) | set(pair.b.engines())
    for pid in pair.b.engines():
        os.kill(pid, signal.SIGKILL)
    with pair.a.inside():
        wait_for("the whole to be ended", lambda: pair.a.service("duo").state is not State.READY)
        pair.a.await_state("duo", State.READY)
    assert not before & (set(pair.a.engines()) | set(pair.b.engines()))
    assert pair.a.chat("duo").status_code == 200
    pair.a.run("down", "duo")
    assert (pair.a.engines(), pair.b.engines()) == ({}, {})
