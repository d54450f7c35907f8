"""The words planned for Ray, run on two boxes of a network by the real Ray: it then has a GPU to give on each.

vLLM itself is not started: its build for the processor knows no device that Ray could give it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec
import pytest

from checkpoints import LLAMA, WHOLE, llama, write_checkpoint
from home import wait_for
from net_boxes import IN_NAMESPACES, Box, Network
from pair_of_sparks import write_facts
from stoker.facts.machine.boxes import read_box
from stoker.records.machine import NetworkPort
from stoker.records.spread import RankPlan, SpreadReport

PYTHON = os.environ.get("STOKER_CLUSTERS", "")
LIMIT_S = 120.0
pytestmark = [pytest.mark.elsewhere(bool(PYTHON), "the clusters of `make test-clients`"), IN_NAMESPACES]


@pytest.fixture
def pair(network: Network) -> Iterator[tuple[Box, Box]]:
    """Two boxes, of which nothing of Ray is left afterwards."""
    a, b = network.add("a"), network.add("b")
    yield a, b
    for box in (a, b):
        for pid in _pids(box):
            os.kill(pid, signal.SIGKILL)
        wait_for("Ray to end", partial(_is_empty, box))


def _is_empty(box: Box) -> bool:
    return not _pids(box)


def _pids(box: Box) -> list[int]:
    found = subprocess.run(["ip", "netns", "pids", box.namespace], capture_output=True, text=True, check=True)
    return [int(pid) for pid in found.stdout.split()]


def plan(box: Box, *others: Box) -> tuple[RankPlan, ...]:
    """Returns the ranks that are planned for boxes with these addresses."""
    boxes = {one.name: one for one in (box, *others)}
    facts = {
        name: msgspec.structs.replace(
            read_box("gb10"), ports=(NetworkPort("none", 1, True, "ethernet", 200.0, "eth0", 1500, one.address),)
        )
        for name, one in boxes.items()
    }
    write_facts(box.folder / "boxes", **facts)
    model = write_checkpoint(box.folder / "model", llama(LLAMA), LLAMA, **WHOLE)
    names = json.dumps(list(boxes))
    box.configure(
        f'[service.duo]\nmodel = "{model}"\nengine = "vllm"\nversion = "0.26.0"\nboxes = {names}\nsplit = "tensor"\n'
        'executor = "ray"\n'
    )
    return msgspec.convert(box.json("plan", "duo"), SpreadReport).ranks


def start(box: Box, words: tuple[str, ...], log: Path) -> subprocess.Popen[bytes]:
    """Starts Ray's own words on a box."""
    assert words[0] == "ray"
    program = str(Path(PYTHON).with_name("ray"))
    own = {**os.environ, "RAY_DISABLE_IMPORT_WARNING": "1", "RAY_USAGE_STATS_ENABLED": "0", "RAY_TMPDIR": str(box.folder)}
    with log.open("wb") as out:
        return subprocess.Popen([*box.prefix, program, *words[1:]], stdout=out, stderr=out, env=own)


def test_the_planned_words_make_a_cluster_with_a_gpu_on_each_box(pair: tuple[Box, Box]) -> None:
    a, b = pair
    head, worker = plan(a, b)
    begun = start(a, head.before, a.folder / "ray.log")
    assert begun.wait(LIMIT_S) == 0, (a.folder / "ray.log").read_text()
    joining = start(b, worker.instead, b.folder / "ray.log")
    story = [*a.prefix, PYTHON, str(Path(__file__).with_name("ray_cluster_story.py")), f"{a.address}:6379"]
    done = subprocess.run(story, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [a.address, b.address]
    assert joining.poll() is None  # it stays, as a service's process has to
    joining.kill()
    joining.wait()
