"""Services in containers of a real podman, from `stoker up` to `stoker down`, with the real llama.cpp in them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import pytest

from container_home import IMAGE, ContainerHome, container_home, places
from home import Home
from real_tools import OwnPodman
from stoker.config import demo_model
from stoker.records import State


@pytest.fixture
def containers(podman: OwnPodman, tmp_path_factory: pytest.TempPathFactory, home: Home) -> Iterator[ContainerHome]:
    """A podman that the home's daemon finds, and a service `boxed` whose engine runs in one of its containers."""
    with container_home(podman, tmp_path_factory.mktemp("c")) as containers:
        home.environment |= podman.environment | containers.service.environment
        program = json.dumps([sys.executable, "-P", "-m", "stoker.embedded"])
        mounts = json.dumps([f"{host}:{inside}" for host, inside in places()])
        home.configure(
            f'[service.boxed]\nmodel = "{demo_model()}"\nengine = "llamacpp"\nimage = "{IMAGE}"\ncontext = 512\n'
            f'program = {program}\nmounts = {mounts}\nreasoning = "off"\n'
        )
        yield containers
        home.run("down", code=None)


def test_a_service_in_a_container_is_served_taken_back_and_ended(home: Home, containers: ContainerHome) -> None:
    view = home.json("up", "boxed")
    assert (view["state"], view["engine"]) == ("READY", "llamacpp")
    assert containers.names() == ["stoker-boxed"]
    assert home.run("ask", "--model", "boxed", "Who are you?").stdout.strip()
    home.kill_daemon()
    assert containers.names() == ["stoker-boxed"]
    assert home.json("up", "boxed")["pid"] == view["pid"], "the same container was taken back"
    assert "listening" in home.run("logs", "boxed", "--lines", "1000").stdout
    home.run("down", "boxed")
    assert containers.names() == []
    assert home.service("boxed").state is State.STOPPED


def test_a_service_goes_back_to_the_image_that_worked(home: Home, containers: ContainerHome) -> None:
    first = home.json("up", "boxed")["plan_id"]
    containers.podman.make_image(IMAGE, {"new": "exit 0"})
    second = home.json("up", "boxed")["plan_id"]
    assert first != second, "the tag moved, so this is another plan"
    done = home.run("rollback", "boxed")
    assert "boxed is READY" in done.stdout
    assert home.service("boxed").plan_id == first
    assert home.run("ask", "--model", "boxed", "Who are you?").stdout.strip()


def test_an_image_that_is_not_here_is_refused_with_the_command_that_brings_it(home: Home, containers: ContainerHome) -> None:
    containers.podman("rmi", IMAGE)
    assert "`stoker fetch boxed` pulls it" in home.run("up", "boxed", code=3).stderr


def test_a_container_killed_from_outside_is_started_anew(home: Home, containers: ContainerHome) -> None:
    before = home.json("up", "boxed")["pid"]
    containers.podman("kill", "stoker-boxed")
    home.await_state("boxed", State.BACKOFF, State.WAITING_FOR_MEMORY, State.STARTING, State.LOADING, State.STOPPING)
    view = home.await_state("boxed", State.READY)
    assert (view.restarts, view.pid == before) == (1, False)
