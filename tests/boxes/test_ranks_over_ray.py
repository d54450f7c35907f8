"""One model over two boxes through Ray: its head first, then the workers, the engine last; whatever ends, ends all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fake_engine import Script
from fake_rank import SERVICE, write_rank
from fake_ray import remove_links
from home import wait_for
from net_boxes import IN_NAMESPACES, Box, Network
from stoker.records import ServiceView, State
from stoker.supervise.runtimes.ranked import LEASE_S

MODEL = Path(__file__).parents[2] / "models" / "demo" / "hf"
OVER_RAY = 'executor = "ray"'
pytestmark = IN_NAMESPACES


def set_up(box: Box, limits: str = "", more: str = OVER_RAY, **script: object) -> Path:
    program = write_rank(box.folder / "rank", Script(**script))  # type: ignore[arg-type]
    box.configure(SERVICE.format(model=MODEL, program=program, more=more), limits=limits)
    return program


def known(box: Box) -> ServiceView:
    with box.inside():
        return box.service("duo")


def wait_until(box: Box, *states: State) -> ServiceView:
    with box.inside():
        return box.await_state("duo", *states)


def of_ray(box: Box, role: str = "") -> list[int]:
    """The processes of Ray on a box, or those of one role: start (in front), gcs, raylet, or agent, which has no marker."""
    found = subprocess.run(["ip", "netns", "pids", box.namespace], capture_output=True, text=True, check=True)
    return [pid for pid in map(int, found.stdout.split()) if _is_ray(pid) and (not role or role in _words(pid))]


def _words(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return []


def _is_ray(pid: int) -> bool:
    return any(word.endswith(("/rank/ray", "/fake_ray.py")) for word in _words(pid))


def everything(*boxes: Box) -> set[int]:
    """All processes of engines and of Ray."""
    return {pid for box in boxes for pid in (*box.engines(), *of_ray(box))}


def nothing_is_left(*boxes: Box) -> bool:
    return not everything(*boxes)


@pytest.fixture(autouse=True)
def no_links(network: Network) -> Iterator[None]:
    """Leaves no link of Ray's in /tmp: the folders of tests are too long for sockets."""
    yield
    for box in network.boxes.values():
        remove_links(box.folder)


@pytest.fixture
def pair(network: Network) -> Iterator[tuple[Box, Box]]:
    """Two boxes whose service goes over Ray; nothing of either is left afterwards."""
    a, b = network.add("a"), network.add("b")
    set_up(a)
    set_up(b)
    a.join(b, "--act")
    yield a, b
    left = {box.name: of_ray(box) for box in (a, b) if box.run("down", code=None) and of_ray(box)}
    for pid in (pid for of_box in left.values() for pid in of_box):
        os.kill(pid, signal.SIGKILL)
    assert left == {}


def settled(box: Box) -> ServiceView:
    """Waits for the end of a fault: up again, or given up."""
    with box.inside():
        wait_for("it to be noticed", lambda: box.service("duo").state is not State.READY, 10.0)
    return wait_until(box, State.READY, State.FAILED)


def test_one_command_starts_rays_head_then_the_worker_then_the_engine(pair: tuple[Box, Box]) -> None:
    a, b = pair
    a.run("up", "duo")
    wait_for("the rank to be READY", lambda: known(b).state is State.READY, 5.0)
    log = a.paths.engine_log("duo").read_text()
    assert log.index("Ray runtime started.") < log.index("over Ray on ['10.77.0.1', '10.77.0.2']")
    assert "told ['NCCL_DEBUG']" in log  # what is each box's own, it has from its own Ray
    assert "Ray runtime started." in b.paths.engine_log("duo").read_text()
    assert (len(of_ray(a)), len(of_ray(b))) == (4, 3)
    assert a.chat("duo").status_code == 200
    a.run("down", "duo")
    assert nothing_is_left(a, b)
    assert (known(a).state, known(b).state) == (State.STOPPED, State.STOPPED)


def test_each_box_keeps_rays_files_in_its_own_state(pair: tuple[Box, Box]) -> None:
    a = pair[0]
    a.run("up", "duo")
    assert all((box.paths.state / "ray" / "duo" / "session").is_dir() for box in pair)
    (stale := a.paths.state / "ray" / "duo" / "stale").touch()
    a.run("down", "duo")
    a.run("up", "duo")
    assert not stale.exists()


@pytest.mark.parametrize(("on", "role"), [("b", "raylet"), ("b", "start"), ("a", "gcs"), ("a", "start")])
def test_a_process_of_rays_that_is_killed_ends_all_and_the_whole_comes_back(
    pair: tuple[Box, Box], on: str, role: str
) -> None:
    a, b = pair
    a.run("up", "duo")
    before = everything(a, b)
    (one,) = of_ray(a if on == "a" else b, role)
    os.kill(one, signal.SIGKILL)
    view = settled(a)
    assert (view.state, view.restarts) == (State.READY, 1)
    assert not before & everything(a, b)
    assert a.chat("duo").status_code == 200


def test_an_engine_that_is_killed_takes_ray_with_it_on_every_box(pair: tuple[Box, Box]) -> None:
    a, b = pair
    a.run("up", "duo")
    before = everything(a, b)
    (engine,) = [pid for pid in a.engines() if not _is_ray(pid)]
    os.kill(engine, signal.SIGKILL)
    assert settled(a).state is State.READY
    assert not before & everything(a, b)
    a.run("down", "duo")
    assert nothing_is_left(a, b)


def test_an_engine_that_ray_does_not_suit_fails_and_nothing_is_left(pair: tuple[Box, Box]) -> None:
    a, b = pair
    set_up(a, dies="loading")
    done = a.run("up", "duo", code=1)
    assert "exit code 1" in done.stderr
    assert nothing_is_left(a, b)


def test_a_worker_that_cannot_join_is_named_and_rays_head_ends(pair: tuple[Box, Box]) -> None:
    a, b = pair
    (b.folder / "rank" / "ray").write_text("#!/bin/sh\necho 'ray: cannot join' >&2\nexit 3\n")
    done = a.run("up", "duo", code=1)
    assert "rank 1 on b is" in done.stderr and "exit code 3" in done.stderr
    assert nothing_is_left(a, b)
    assert "over Ray" not in a.paths.engine_log("duo").read_text()


def test_a_worker_without_memory_keeps_the_engine_from_starting(network: Network) -> None:
    a, b = network.add("a"), network.add("b")
    set_up(a)
    set_up(b, limits="memory_wait_s = 0.2\nmemory_floor_bytes = 100000000000000")
    a.join(b, "--act")
    done = a.run("up", "duo", code=1)
    assert "rank 1 on b is FAILED" in done.stderr and "93132.3 GiB kept" in done.stderr
    assert nothing_is_left(a, b)


def test_a_new_daemon_of_the_head_takes_all_back(pair: tuple[Box, Box]) -> None:
    a, b = pair
    a.run("up", "duo")
    before = everything(a, b)
    a.kill_daemon()
    a.run("up", "duo")
    assert everything(a, b) == before
    assert a.chat("duo").status_code == 200
    os.kill(of_ray(a, "gcs")[0], signal.SIGKILL)
    assert settled(a).state is State.READY  # it is watched as before


@pytest.mark.parametrize("role", ["start", "engine"])
def test_a_new_daemon_ends_what_lost_its_other_half(pair: tuple[Box, Box], role: str) -> None:
    a, b = pair
    a.run("up", "duo")
    before = everything(a, b)
    lost = of_ray(a, role) or [pid for pid in a.engines() if not _is_ray(pid)]
    a.kill_daemon()
    for pid in lost:
        os.kill(pid, signal.SIGKILL)
    a.run("up", "duo")
    assert not before & everything(a, b)
    assert a.chat("duo").status_code == 200


def test_a_new_daemon_of_a_worker_takes_its_ray_back(pair: tuple[Box, Box]) -> None:
    a, b = pair
    a.run("up", "duo")
    before = everything(a, b)
    b.kill_daemon()
    b.run("boxes", "code")  # starts the next one
    assert wait_until(b, State.READY, State.FAILED).state is State.READY
    assert everything(a, b) == before
    assert a.chat("duo").status_code == 200


def test_a_new_daemon_of_a_worker_ends_what_its_ray_left(pair: tuple[Box, Box]) -> None:
    a, b = pair
    a.run("up", "duo")
    before = everything(a, b)
    b.kill_daemon()
    os.kill(of_ray(b, "start")[0], signal.SIGKILL)
    assert of_ray(b, "agent")  # without a marker, and without a parent
    b.run("boxes", "code")
    assert settled(a).state is State.READY
    assert not before & everything(a, b)


def test_down_without_a_daemon_ends_what_half_of_ray_left(pair: tuple[Box, Box]) -> None:
    a, b = pair
    a.run("up", "duo")
    a.kill_daemon()
    os.kill(of_ray(a, "start")[0], signal.SIGKILL)
    assert of_ray(a, "agent")
    a.run("down")
    assert nothing_is_left(a)
    wait_for("the worker to end without its head", lambda: nothing_is_left(b), 45.0)


def test_a_daemon_that_dies_while_workers_join_leaves_nothing(pair: tuple[Box, Box]) -> None:
    a, b = pair
    (b.folder / "rank" / "ray").write_text("#!/bin/sh\nwhile :; do sleep 1; done\n")
    words = [*a.prefix, sys.executable, "-m", "stoker", "up", "duo"]
    up = subprocess.Popen(words, env=a.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for("the worker's Ray", lambda: bool(of_ray(b)))
        assert "Ray's head here, and b to join it" in (known(a).awaits or "")
        a.kill_daemon()
    finally:
        up.kill()
        up.wait()
    assert of_ray(a)
    a.run("down")
    assert nothing_is_left(a)
    wait_for("the worker to end without its head", lambda: nothing_is_left(b), 45.0)


def four(network: Network) -> list[Box]:
    """Four boxes with the same service, of which the first may act on the others."""
    boxes = [network.add(name) for name in "abcd"]
    for box in boxes:
        set_up(box)
        box.paths.config.write_text(box.paths.config.read_text().replace('["a", "b"]', '["a", "b", "c", "d"]'))
    for box in boxes[1:]:
        boxes[0].join(box, "--act")
    return boxes


def hold_up(box: Box) -> Path:
    """Has Ray begin on a box only once there is a file; returns which."""
    gate, ray = box.folder / "gate", box.folder / "rank" / "ray"
    ray.rename(ray.with_name("ray-after-all"))
    ray.write_text(f'#!/bin/sh\nwhile [ ! -e {gate} ]; do sleep 0.05; done\nexec "$0-after-all" "$@"\n')
    ray.chmod(0o755)
    return gate


@contextmanager
def coming_up(boxes: list[Box]) -> Iterator[subprocess.Popen[bytes]]:
    """`stoker up` on the first box, when two of the others have joined."""
    a = boxes[0]
    up = subprocess.Popen([*a.prefix, sys.executable, "-m", "stoker", "up", "duo"], env=a.environment)
    try:
        wait_for("two to have joined", lambda: bool(of_ray(boxes[1], "raylet") and of_ray(boxes[2], "raylet")))
        yield up
    finally:
        up.kill()
        up.wait()


def test_ranks_that_are_there_are_kept_while_another_takes_longer_than_their_lease(network: Network) -> None:
    boxes = four(network)
    gate = hold_up(boxes[3])
    with coming_up(boxes) as up:
        begun_s, there = time.monotonic(), everything(*boxes[1:3])
        wait_for("a lease to be over", lambda: time.monotonic() > begun_s + LEASE_S + 2.0)
        gate.touch()
        assert up.wait(60) == 0
    assert everything(*boxes[1:3]) >= there
    assert boxes[0].chat("duo").status_code == 200


def test_a_worker_that_dies_while_another_has_yet_to_join_ends_the_wait(network: Network) -> None:
    boxes = four(network)
    hold_up(boxes[3])
    with coming_up(boxes) as up:
        wait_for("the first to be proved", lambda: known(boxes[1]).state is State.PROVING)
        os.kill(of_ray(boxes[1], "start")[0], signal.SIGKILL)
        assert up.wait(60) == 1
    assert "rank 1 on b is" in known(boxes[0]).why
    assert nothing_is_left(*boxes)


def test_an_executor_that_differs_from_box_to_box_is_refused(pair: tuple[Box, Box]) -> None:
    a, b = pair
    set_up(b, more="")
    done = a.run("up", "duo", code=3)
    assert "have not the same executor (a: ray, b: mp)" in done.stderr
    assert nothing_is_left(a, b)


def test_different_rays_are_refused_before_anything_starts(pair: tuple[Box, Box]) -> None:
    a, b = pair
    for box, version in ((a, "2.60.0"), (b, "2.55.1")):
        (box.folder / "pyvenv.cfg").write_text("version = 3.12.3\n")
        (box.folder / "lib" / "python3.12" / "site-packages" / f"ray-{version}.dist-info").mkdir(parents=True)
    done = a.run("up", "duo", code=3)
    assert "have not the same environment (a: python 3.12.3, ray 2.60.0, b: python 3.12.3, ray 2.55.1)" in done.stderr
    assert nothing_is_left(a, b)


def test_a_box_without_ray_is_refused_by_name(pair: tuple[Box, Box]) -> None:
    a, b = pair
    (b.folder / "rank" / "ray").unlink()
    done = a.run("up", "duo", code=3)
    assert "the box `b` cannot take its part of duo: there is no Ray for duo here" in done.stderr
    assert "pip install ray" in done.stderr


def test_another_ray_on_the_heads_port_is_named_before_anything_starts(pair: tuple[Box, Box]) -> None:
    a, b = pair
    listen = "import socket; s = socket.create_server(('0.0.0.0', 6379)); print(flush=True); input()"
    with subprocess.Popen(
        [*a.prefix, sys.executable, "-c", listen],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as other:  # fmt: skip
        assert other.stdout is not None
        other.stdout.readline()
        done = a.run("up", "duo", code=3)
        other.communicate(b"\n")
    assert "port 6379, where Ray's head listens, is taken by" in done.stderr
    assert nothing_is_left(a, b)
