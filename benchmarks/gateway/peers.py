"""What is measured: the engine itself, Stoker, and other gateways, each started in front of a mock engine of its own."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from benchmarks.gateway.processes import ROOT, ask_json, read_tree, start_program, stop_program, wait_for
from benchmarks.gateway.raw_client import CHAT
from stoker.facts.machine.ports import pick_free_port

PEERS_FILE = Path(__file__).with_name("peers.toml")
MOCK = ("benchmarks.gateway.mock_engine",)  # what follows `python -m`
READY_LIMIT_S = 90.0
ENGINE_LIMIT_S = 20.0


class Cores(NamedTuple):
    """Which processor core is whose; None for any."""

    engine: int | None = None
    gateway: int | None = None
    client: int | None = None


class Entry(msgspec.Struct, forbid_unknown_fields=True):
    """A gateway of `peers.toml`."""

    program: list[str]
    files: dict[str, str] = {}
    environment: dict[str, str] = {}
    ready: str = "/health"
    version: list[str] = []


class Peer(Protocol):
    """A gateway that is up, and the mock engine behind it."""

    name: str
    port: int
    engine_port: int
    headers: dict[str, str]
    ready_s: float

    def pids(self) -> list[int]:
        """Returns the gateway's processes, not the engine's."""

    def restart(self) -> None:
        """Starts the gateway again where it may hold a fault of the engine against it."""

    def stop(self) -> float | None:
        """Ends gateway and engine; returns how long the gateway took, None where it had to be killed."""


def read_entries() -> dict[str, Entry]:
    """Reads `peers.toml`."""
    text = PEERS_FILE.read_text().replace("@python@", sys.executable).replace("@root@", str(ROOT))
    return msgspec.convert(tomllib.loads(text), type=dict[str, Entry])


def read_version(entry: Entry) -> str:
    """Returns a program's version: what it prints, or the one that its environment was locked to; raises OSError."""
    if not entry.version:
        lock = (ROOT / "lock" / "peers" / f"{entry.program[0]}.in").read_text()
        return lock.strip().rpartition("==")[2]
    done = subprocess.run(entry.version, capture_output=True, text=True, check=True, timeout=10)
    found = re.search(r"\d+\.\d+\.\d+", done.stdout + done.stderr)
    return found[0] if found else "unknown"


class Direct:
    """No gateway: the engine itself."""

    name = "direct"
    ready_s = 0.0

    def __init__(self, cores: Cores, engine: Sequence[str] = MOCK) -> None:
        self.port = self.engine_port = pick_free_port("127.0.0.1")
        self.headers: dict[str, str] = {}
        words = [sys.executable, "-m", *engine, "--port", str(self.port)]
        self._process = start_program(words, core=cores.engine)
        wait_for("the mock engine", lambda: ask_json(self.port, "/health")[0] == 200, ENGINE_LIMIT_S)

    def pids(self) -> list[int]:
        """Returns none, since there is no gateway."""
        return []

    def restart(self) -> None:
        """Has nothing to do."""

    def stop(self) -> float | None:
        """Ends the engine."""
        return stop_program(self._process)


class Program:
    """A gateway of `peers.toml`."""

    def __init__(self, name: str, entry: Entry, cores: Cores, engine: Sequence[str] = MOCK) -> None:
        if shutil.which(entry.program[0]) is None:
            raise FileNotFoundError(f"{entry.program[0]} is not on PATH")
        self.name = name
        self.headers: dict[str, str] = {}
        self._entry, self._core = entry, cores.gateway
        self._engine = Direct(cores, engine)
        self.engine_port = self._engine.port
        self._folder = Path(tempfile.mkdtemp(prefix=f"{name}-"))
        self.port = pick_free_port("127.0.0.1")
        self._marks = {
            "@port@": str(self.port), "@port2@": str(pick_free_port("127.0.0.1")), "@folder@": str(self._folder),
            "@url@": f"http://127.0.0.1:{self.engine_port}", "@address@": f"127.0.0.1:{self.engine_port}",
        }  # fmt: skip
        for file, text in entry.files.items():
            (self._folder / file).write_text(self._fill(text))
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def _fill(self, text: str) -> str:
        for mark, value in self._marks.items():
            text = text.replace(mark, value)
        return text

    def _start(self) -> None:
        begun_s = time.monotonic()
        words = [self._fill(word) for word in self._entry.program]
        self._process = start_program(
            words, core=self._core, more=self._entry.environment, folder=self._folder, log=self._folder / "log"
        )
        wait_for(f"{self.name}, whose log is in {self._folder}", self._is_ready, READY_LIMIT_S)
        wait_for(f"{self.name}'s first answer", lambda: answers(self), READY_LIMIT_S)
        self.ready_s = time.monotonic() - begun_s

    def _is_ready(self) -> bool:
        if self._process.poll() is not None:
            raise RuntimeError(f"{self.name} ended with {self._process.returncode}; its log is in {self._folder}")
        return ask_json(self.port, self._entry.ready)[0] == 200

    def pids(self) -> list[int]:
        """Returns the gateway's processes."""
        return read_tree(self._process.pid)

    def restart(self) -> None:
        """Starts the gateway again."""
        stop_program(self._process)
        self._start()

    def stop(self) -> float | None:
        """Ends both."""
        took_s = stop_program(self._process)
        self._engine.stop()
        if self._process.returncode in (0, -15):
            shutil.rmtree(self._folder, ignore_errors=True)
        return took_s


def answers(peer: Peer) -> bool:
    """Tells whether a short chat is answered."""
    content = {"model": "mock", "messages": [{"role": "user", "content": "mock ttft=1 itl=1 tokens=1"}]}
    status: int = ask_json(peer.port, CHAT, content, peer.headers)[0]
    return status == 200


def ask_engine(peer: Peer, path: str) -> Any:
    """Asks the mock engine itself."""
    return ask_json(peer.engine_port, path)[1]
