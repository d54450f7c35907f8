"""Stoker as one of the gateways: the real daemon, which starts the mock engine itself and has it prove itself."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.gateway.peers import MOCK, READY_LIMIT_S, Cores, answers
from benchmarks.gateway.processes import ROOT, read_tree, start_program, stop_program, wait_for
from stoker.config import Paths
from stoker.facts.machine.ports import pick_free_port

STOP_LIMIT_S = 150.0  # a stop waits until the engine's memory is back, for which other programs may be to blame


def render_mock_service(name: str, port: int, more: str = "", core: int | None = None, engine: Sequence[str] = MOCK) -> str:
    """Returns the table of a service whose engine is the mock, which says that it is the model of the service's name."""
    words = [sys.executable, "-m", *engine, "--port", "{port}", "--name", name, "--model", name]
    words += ["--core", str(core)] if core is not None else []
    return (
        f'[service.{name}]\nengine = "command"\nprogram = {json.dumps(words)}\nserved_name = "{name}"\nport = {port}\n'
        f'health = "/health"\nclaim_gib = 0.1\nenvironment = {{ PYTHONPATH = {json.dumps(str(ROOT))} }}\n{more}\n'
    )


class StokerHome:
    """A state folder and a daemon of its own, on a free port."""

    def __init__(self, services: str, core: int | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="stoker-"))
        paths = Paths(state=self.folder / "state", config=self.folder / "stoker.toml")
        paths.config.write_text(f"[gateway]\nport = 0\n[limits]\nswitch_cooldown_s = 0\n{services}")
        own = {"STOKER_STATE": str(paths.state), "STOKER_CONFIG": str(paths.config)}
        self._environment = {**os.environ, **own}
        words = [sys.executable, "-P", "-m", "stoker", "serve"]
        self.process = start_program(words, core=core, more=own, folder=self.folder, log=self.folder / "log")
        try:
            wait_for("the daemon", lambda: self._is_up(paths.address_file), READY_LIMIT_S)
        except BaseException:
            self.stop()
            raise
        self.port = int(paths.address_file.read_text().rpartition(":")[2])
        self.headers = {"Authorization": f"Bearer {paths.key_file.read_text().strip()}"}

    def _is_up(self, address: Path) -> bool:
        if self.process.poll() is not None:
            raise RuntimeError(
                f"the daemon ended with {self.process.returncode}: {(self.folder / 'log').read_text()[-2000:]}"
            )
        return address.exists()

    def run(self, *words: str) -> str:
        """Runs a verb; returns what it printed."""
        argv = [sys.executable, "-P", "-m", "stoker", *words]
        done = subprocess.run(argv, env=self._environment, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            raise RuntimeError(f"stoker {' '.join(words)} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def engine_pids(self) -> set[int]:
        """Returns the processes of all engines."""
        views: list[dict[str, Any]] = json.loads(self.run("status", "--json"))["services"]
        return {pid for view in views if view["pid"] for pid in read_tree(view["pid"])}

    def pids(self) -> list[int]:
        """Returns the daemon's processes, without the engines."""
        engines = self.engine_pids()
        return [pid for pid in read_tree(self.process.pid) if pid not in engines]

    def stop(self) -> float | None:
        """Ends the daemon, which ends its engines first; returns how long that took, None where it had to be killed."""
        took_s = stop_program(self.process, STOP_LIMIT_S)
        shutil.rmtree(self.folder, ignore_errors=True)
        return took_s


class Stoker:
    """Stoker in front of one mock engine; asked with the key, whose check is part of the price."""

    name = "stoker"

    def __init__(self, cores: Cores, engine: Sequence[str] = MOCK) -> None:
        begun_s = time.monotonic()
        self.engine_port = pick_free_port("127.0.0.1")
        self._home = StokerHome(
            render_mock_service("mock", self.engine_port, core=cores.engine, engine=engine), cores.gateway
        )
        self.port, self.headers = self._home.port, self._home.headers
        try:
            self._home.run("up", "mock")
            wait_for("the first answer", lambda: answers(self), READY_LIMIT_S)
        except BaseException:
            self.stop()
            raise
        self._pids = self._home.pids()
        self.ready_s = time.monotonic() - begun_s

    def pids(self) -> list[int]:
        """Returns the daemon's processes."""
        return self._pids

    def restart(self) -> None:
        """Has nothing to do: a fault of one reply is held against no engine."""

    def stop(self) -> float | None:
        """Ends daemon and engine."""
        return self._home.stop()
