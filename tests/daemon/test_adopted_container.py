"""`stoker adopt CONTAINER`: the real llama.cpp in a container that somebody else started with podman."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from container_home import IMAGE, ContainerHome, container_home, places
from home import Home, wait_for
from real_tools import OwnPodman
from stoker.config import demo_model
from stoker.facts.machine.ports import pick_free_port
from stoker.records import State


@pytest.fixture
def containers(podman: OwnPodman, tmp_path_factory: pytest.TempPathFactory, home: Home) -> Iterator[ContainerHome]:
    """A podman that the home's daemon finds."""
    with container_home(podman, tmp_path_factory.mktemp("c")) as containers:
        home.environment |= podman.environment | containers.service.environment
        yield containers
        home.run("down", code=None)


def start_by_hand(containers: ContainerHome, name: str, *more: str) -> int:
    """Starts llama.cpp as a person would, and returns the port on this machine."""
    port = pick_free_port("127.0.0.1")
    model = demo_model().resolve()
    mounts = [f"--volume={host}:{inside}" for host, inside in (*places(), (str(model.parent), f"{model.parent}:ro"))]
    engine = ("-P", "-m", "stoker.embedded", "--model", str(model), "--alias", "ours", "--host", "0.0.0.0", "--port", "8080")
    containers.podman(
        "run", "--detach", "--name", name, "--publish", f"127.0.0.1:{port}:8080", *mounts, "--entrypoint", sys.executable,
        *more, IMAGE, *engine, "--ctx-size", "512", "--reasoning", "off",
    )  # fmt: skip
    return port


def test_what_a_container_with_a_terminal_says_is_in_its_log(home: Home, containers: ContainerHome) -> None:
    start_by_hand(containers, "seen", "--tty")
    home.json("adopt", "seen", "--name", "taken")
    said = wait_for("its log", lambda: [one for one in home.run("logs", "taken").stdout.splitlines() if "listening" in one])
    assert not any("\r" in line for line in said)
    home.run("down", "taken")


def test_a_container_that_runs_is_taken_over_as_it_is_and_stopped_but_not_removed(
    home: Home, containers: ContainerHome
) -> None:
    port = start_by_hand(containers, "theirs", "--env", "LLAMA_API_KEY=their-own")
    adopted = home.json("adopt", "theirs", "--name", "taken")
    assert adopted["service"]["state"] == "READY"
    assert adopted["service"]["address"] == f"http://127.0.0.1:{port}"
    assert home.run("ask", "--model", "ours", "Who are you?").stdout.strip()
    pid = adopted["service"]["pid"]
    home.kill_daemon()
    assert home.json("status")["services"][0]["pid"] == pid
    home.run("up")  # another service brings a daemon
    wait_for("it to be taken back", lambda: home.service("taken").pid)
    home.await_state("taken", State.READY)
    assert int(containers.podman("inspect", "--format", "{{.State.Pid}}", "theirs")) == pid, "it was never restarted"
    assert home.run("ask", "--model", "ours", "Who are you?").stdout.strip()
    home.run("down", "taken")
    assert containers.names() == ["theirs"], "what somebody else started is not removed"
    assert containers.podman("inspect", "--format", "{{.State.Running}}", "theirs").strip() == "false"
    assert "their-own" not in (home.paths.state / "stoker.db").read_bytes().decode(errors="replace")


def test_what_cannot_be_adopted_is_said(home: Home, containers: ContainerHome) -> None:
    assert "there is no container `nobody`" in home.run("adopt", "nobody", code=3).stderr
    containers.podman(
        "run", "--detach", "--name", "sleeper", "--volume=/usr:/usr:ro", "--entrypoint", "/usr/bin/sleep", IMAGE, "60"
    )
    assert "runs no engine that Stoker knows" in home.run("adopt", "sleeper", code=3).stderr
    assert "cannot be adopted with --restart" in home.run("adopt", "sleeper", "--restart", code=3).stderr
    containers.podman("kill", "sleeper")
    assert "does not run" in home.run("adopt", "sleeper", code=3).stderr
