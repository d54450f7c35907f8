"""One model over two boxes, each with a network, a Stoker and a real vLLM of its own: one `stoker up` starts both ranks."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

import vllm_home
from home import wait_for
from net_boxes import IN_NAMESPACES, Box, Network
from stoker.records import State

pytestmark = [pytest.mark.elsewhere(bool(vllm_home.PYTHON), "the vLLM of `make test-engines`"), IN_NAMESPACES]
LIMIT_S = 240.0


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Box, Box]]:
    """Two boxes that are joined, with the same service in both files."""
    net = Network(tmp_path_factory.mktemp("net"))
    a, b = net.add("a"), net.add("b")
    for box in (a, b):
        box.limit_s = LIMIT_S
        box.configure(vllm_home.write_pair())
        box.run("status", code=None)
        box.run("up")
        box.run("down", "demo")
    a.join(b, "--act")
    try:
        yield a, b
    finally:
        left = net.end()
    assert left == {}


def test_both_ranks_are_started_by_one_command_and_answer_as_one_model(pair: tuple[Box, Box]) -> None:
    a, b = pair
    a.json("up", "duo")
    reply = a.chat("duo")
    assert reply.status_code == 200, reply.text
    assert reply.json()["usage"]["completion_tokens"] > 0
    with a.inside():
        (rank,) = a.service("duo").ranks
    assert (rank.rank, rank.box, rank.state) == (1, "b", State.READY)
    assert rank.memory_bytes
    assert "rank 1 in world size 2 is assigned" in b.paths.engine_log("duo").read_text()
    assert b.chat("duo").status_code == 404  # a part answers nobody


def test_a_rank_that_dies_ends_the_whole_which_comes_back(pair: tuple[Box, Box]) -> None:
    a, b = pair
    a.json("up", "duo")
    before = set(a.engines()) | set(b.engines())
    for pid in b.engines():
        os.kill(pid, signal.SIGKILL)
    with a.inside():
        wait_for("the whole to be ended", lambda: a.service("duo").state is not State.READY)
        view = a.await_state("duo", State.READY)
    assert view.restarts == 1
    assert not before & (set(a.engines()) | set(b.engines()))
    assert a.chat("duo").status_code == 200


def test_down_ends_both_ranks(pair: tuple[Box, Box]) -> None:
    a, b = pair
    a.json("up", "duo")
    a.run("down", "duo")
    assert (a.engines(), b.engines()) == ({}, {})
