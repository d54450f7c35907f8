"""A service over two boxes of a network by one command, through the real Ray: it gives a GPU on each, and ends without rest.

vLLM itself is not started: its build for the processor knows no device that Ray could give it. In its place stands a program
that asks Ray for what vLLM asks it for (`ray_rank.py`).
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fake_engine import write_program
from fake_rank import SERVICE
from fake_ray import remove_links
from home import wait_for
from net_boxes import IN_NAMESPACES, Box, Network
from stoker.facts.machine.ports import is_port_free
from stoker.records import ServiceView, State

PYTHON = os.environ.get("STOKER_CLUSTERS", "")
MODEL = Path(__file__).parents[2] / "models" / "demo" / "hf"
GIB = 1024**3
DASHBOARD_PORT = 8265
TOKEN = "0123456789abcdef" * 4
SIGNS = re.compile(r"ray::|site-packages/ray/|-m ray\.|bin/ray start")
TOLD = re.compile(r"^workers: (?P<workers>.*) store: (?P<store>.*)$", re.MULTILINE)
pytestmark = [pytest.mark.elsewhere(bool(PYTHON), "the clusters of `make test-clients`"), IN_NAMESPACES]


def set_up(box: Box, more: str = "") -> None:
    """Gives a box an environment with the real Ray and the program that stands for vLLM."""
    folder = box.folder / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "script.json").write_text("{}")
    program = write_program(folder / "vllm", "ray_rank", folder / "script.json", PYTHON, Path(__file__).parent)
    (folder / "ray").unlink(missing_ok=True)
    (folder / "ray").symlink_to(Path(PYTHON).with_name("ray"))
    box.configure(SERVICE.format(model=MODEL, program=program, more=f'executor = "ray"\n{more}'))


@pytest.fixture
def pair(network: Network) -> Iterator[tuple[Box, Box]]:
    """Two boxes of which nothing is left afterwards."""
    a, b = network.add("a"), network.add("b")
    set_up(a)
    set_up(b)
    a.join(b, "--act")
    a.limit_s = b.limit_s = 120.0
    yield a, b
    for box in (a, b):
        box.run("down", code=None)
        remove_links(box.folder)
    left = {box.name: of_ray(box) for box in (a, b)}
    for pid in (pid for of_box in left.values() for pid in of_box):
        os.kill(pid, signal.SIGKILL)
    assert left == {"a": {}, "b": {}}


def of_ray(box: Box) -> dict[int, str]:
    """The processes of a box that are Ray's or were started by it, or that stand for vLLM."""
    found = subprocess.run(["ip", "netns", "pids", box.namespace], capture_output=True, text=True, check=True)
    said = {int(pid): _words(pid) for pid in found.stdout.split()}
    return {pid: words for pid, words in said.items() if SIGNS.search(words) or str(box.folder / "bin") in words}


def _words(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()
    except OSError:
        return ""


def of_role(box: Box, role: str) -> int:
    """The one process of Ray on a box whose words hold this."""
    (found,) = [pid for pid, words in of_ray(box).items() if role in words]
    return found


def known(box: Box) -> ServiceView:
    with box.inside():
        return box.service("duo")


def await_again(box: Box) -> ServiceView:
    """Waits until a fault was noticed and mended, or was given up."""
    with box.inside():
        wait_for("it to be noticed", lambda: box.service("duo").state is not State.READY, 30.0)
        return box.await_state("duo", State.READY, State.FAILED)


def test_two_boxes_give_a_gpu_each_and_nothing_of_ray_outlives_them(pair: tuple[Box, Box]) -> None:
    a, b = pair
    a.run("up", "duo")
    assert a.chat("duo").status_code == 200
    found = TOLD.search(a.paths.engine_log("duo").read_text())
    assert found is not None
    assert json.loads(found["workers"]) == [
        {"address": box.address, "VLLM_HOST_IP": box.address, "NCCL_SOCKET_IFNAME": "eth0", "CUDA_VISIBLE_DEVICES": "0"}
        for box in pair
    ]
    assert json.loads(found["store"]) == [GIB]
    assert all((box.paths.state / "ray" / "duo" / "session_latest").exists() for box in pair)
    with a.inside():
        assert is_port_free("0.0.0.0", DASHBOARD_PORT)
    # The whole ends with whatever part of Ray does, and comes back.
    for box, role in ((b, "raylet/raylet"), (a, "gcs/gcs_server")):
        before = {**of_ray(a), **of_ray(b)}
        os.kill(of_role(box, role), signal.SIGKILL)
        assert await_again(a).state is State.READY
        assert not before.keys() & {**of_ray(a), **of_ray(b)}.keys()
    a.run("down", "duo")
    assert (of_ray(a), of_ray(b)) == ({}, {})
    assert (known(a).state, known(b).state) == (State.STOPPED, State.STOPPED)


def test_a_new_daemon_takes_ray_back_and_ends_what_is_left_of_half_a_cluster(pair: tuple[Box, Box]) -> None:
    a, b = pair
    a.run("up", "duo")
    before = {**of_ray(a), **of_ray(b)}
    a.kill_daemon()
    a.run("up", "duo")
    assert {**of_ray(a), **of_ray(b)}.keys() == before.keys()
    assert a.chat("duo").status_code == 200
    a.kill_daemon()
    os.kill(of_role(a, "ray start --head"), signal.SIGKILL)
    a.run("up", "duo")
    assert not before.keys() & {**of_ray(a), **of_ray(b)}.keys()
    assert a.chat("duo").status_code == 200


def test_with_a_token_on_each_box_nobody_else_is_let_in(pair: tuple[Box, Box]) -> None:
    a = pair[0]
    for box in pair:
        token = box.folder / "token"
        token.write_text(TOKEN)
        set_up(box, f'environment = {{ RAY_AUTH_MODE = "token", RAY_AUTH_TOKEN_PATH = "{token}" }}')
    a.run("up", "duo")
    assert a.chat("duo").status_code == 200
    assert join(a, TOKEN).returncode == 0
    stranger = join(a, TOKEN[::-1])
    assert stranger.returncode != 0
    assert "authentication" in stranger.stderr.lower()


def join(box: Box, token: str) -> subprocess.CompletedProcess[str]:
    """Joins the cluster as anybody on the network could."""
    words = [*box.prefix, PYTHON, "-c", f"import ray; ray.init(address='{box.address}:6379')"]
    own = {"PATH": os.environ["PATH"], "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token, "HOME": str(box.folder)}
    return subprocess.run(words, env=own, capture_output=True, text=True, timeout=120)
