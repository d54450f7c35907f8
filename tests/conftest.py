"""Fixtures that several folders share."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.gateway.peers import Cores
from benchmarks.gateway.stoker_peer import Stoker
from hypothesis import settings
from xdist.workermanage import WorkerController

from home import Home, wait_for
from net_boxes import Network, Trio
from real_tools import OwnPodman
from small_hub import Hub

# A shell starts what it runs in the background with SIGINT ignored, and that is inherited: no Ctrl-C of a test would arrive.
signal.signal(signal.SIGINT, signal.default_int_handler)
# How long one example takes says how busy the machine is, not whether it was right.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
ABSENT: pytest.StashKey[list[str]] = pytest.StashKey()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what needs something that no package of Debian brings; everything else runs, or fails in CI."""
    absent = {item: mark for item in items for mark in item.iter_markers("elsewhere") if not mark.args[0]}
    items[:] = [item for item in items if item not in absent]
    config.hook.pytest_deselected(items=list(absent))
    config.stash[ABSENT] = sorted({str(mark.args[1]) for mark in absent.values()})


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tells the process that gathers the results what was left out, where the tests run in several."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["absent"] = session.config.stash.get(ABSENT, [])


def pytest_testnodedown(node: WorkerController) -> None:
    """Takes over what a process left out; all of them collect the same."""
    node.config.stash[ABSENT] = node.workeroutput.get("absent", []) if hasattr(node, "workeroutput") else []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Lists what was left out."""
    for what in config.stash.get(ABSENT, []):
        terminalreporter.write_line(f"left out, for want of {what}")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A Stoker of its own; the test fails where it leaves an engine behind."""
    home = Home(tmp_path)
    yield home
    assert home.end() == {}


@pytest.fixture
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnPodman]:
    """A podman of its own."""
    # Not in `tmp_path`: it is as long as the test's name, and a socket's path over 107 bytes makes podman wait for 20 s.
    podman = OwnPodman(tmp_path_factory.mktemp("p") / "man")
    yield podman
    podman.end()


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A Stoker that serves the demo model with the real engine, shared by tests that change nothing."""
    home = Home(tmp_path_factory.mktemp("demo"))
    home.run("up")
    yield home
    assert home.end() == {}


@pytest.fixture(scope="session")
def mocked() -> Iterator[Stoker]:
    """A Stoker in front of the benchmark's mock engine, shared by tests of what passes between client and engine."""
    stoker = Stoker(Cores())
    yield stoker
    assert stoker.stop() is not None, "the daemon had to be killed"


@pytest.fixture
def hub() -> Iterator[Hub]:
    """A hub on loopback."""
    hub = Hub()
    yield hub
    hub.close()


@pytest.fixture
def user(home: Home, hub: Hub, tmp_path: Path) -> Home:
    """A Stoker whose hub is the one on loopback, with an empty cache and no token."""
    strange = ("HF_", "HUGGING", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")
    kept = {name: value for name, value in home.environment.items() if not name.startswith(strange)}
    home.environment = {**kept, "HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hf")}
    return home


@pytest.fixture
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    """A network of its own for one test."""
    network = Network(tmp_path_factory.mktemp("n"))
    yield network
    assert network.end() == {}


@pytest.fixture(scope="session")
def trio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trio]:
    """Three boxes: `a` is the door and serves nothing, `b` and `c` serve the demo model; who breaks something mends it."""
    net = Network(tmp_path_factory.mktemp("n"))
    a, b, c = map(net.add, "abc")
    for box in (b, c):
        box.run("up")
    a.join(b, "--act")
    a.join(c)
    wait_for("both to serve", lambda: a.serves(b) and a.serves(c))
    yield Trio(net, a, b, c)
    assert net.end() == {}
