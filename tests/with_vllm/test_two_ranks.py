"""The words planned for two boxes, started as two ranks of the real vLLM on the processor, which then answer as one."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import msgspec
import pytest

import vllm_home
from home import Home, wait_for
from pair_of_sparks import write_facts
from stoker.box import LocalBox
from stoker.facts.machine.ports import pick_free_port
from stoker.facts.machine.read import read_machine
from stoker.launch.ranks import in_order, rank_launch
from stoker.records.machine import NetworkPort
from stoker.records.spread import RankLaunch, SpreadReport

pytestmark = pytest.mark.elsewhere(bool(vllm_home.PYTHON), "the vLLM of `make test-engines`")
LIMIT_S = 240.0
LOOPBACK = NetworkPort("none", 1, True, "ethernet", None, "lo", 65536, "127.0.0.1")


@contextmanager
def started(rank: RankLaunch, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Starts a rank in a group of its own, and ends what is left of it."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    with log.open("wb") as out:
        process = subprocess.Popen(
            rank.spec.argv, env={**kept, **dict(rank.spec.environment)}, stdout=out, stderr=out, start_new_session=True
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def test_the_planned_ranks_of_two_boxes_answer_as_one_model(home: Home) -> None:
    home.configure(vllm_home.write_pair())
    machine = msgspec.structs.replace(read_machine(LocalBox(), "/"), ports=(LOOPBACK,))
    write_facts(home.folder / "boxes", a=machine, b=machine)
    report = msgspec.convert(home.json("plan", "duo"), SpreadReport)
    port = pick_free_port("127.0.0.1")
    with ExitStack() as running:
        logs = {}
        processes = []
        for rank in in_order(report):
            logs[rank.rank] = home.folder / f"rank{rank.rank}.log"
            processes.append(running.enter_context(started(rank_launch(rank, port), logs[rank.rank])))

        def answers() -> bool | None:
            ended = [one.args for one in processes if one.poll() is not None]
            assert not ended, f"{ended}\n" + "\n".join(log.read_text()[-3000:] for log in logs.values())
            try:
                return httpx.get(f"http://127.0.0.1:{port}/health", timeout=2).status_code == 200 or None
            except httpx.TransportError:
                return None

        wait_for("both ranks are up", answers, LIMIT_S)
        asked = {"model": "duo", "messages": vllm_home.HELLO, "max_tokens": 16, "temperature": 0}
        reply = httpx.post(f"http://127.0.0.1:{port}/v1/chat/completions", json=asked, timeout=60).json()
        assert reply["model"] == "duo"
        assert reply["usage"]["completion_tokens"] > 0
    assert [f"rank {rank} in world size 2 is assigned" in logs[rank].read_text() for rank in (0, 1)] == [True, True]
    stages = home.json("timeline", "--log", str(logs[1]), "--engine", "vllm")
    assert "connect" in json.dumps(stages)
