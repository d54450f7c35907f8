"""A Stoker of its own for a test: its state folder, its daemon, its engines; nothing of it is left afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from fake_engine import Script, write_fake_engine
from lying_program import write_lying_engine
from stoker.config import Paths, demo_model
from stoker.flows.client import Daemon, find_daemon
from stoker.flows.ownership import instance_of, read_owner
from stoker.records import ServiceView, State
from stoker.supervise.process import find_marked

LIMIT_S = 60.0
T = TypeVar("T")


def wait_for(what: str, found: Callable[[], T | None], limit_s: float = LIMIT_S) -> T:
    """Returns the first thing found that is not None or False; fails with its name when the limit is over."""
    end = time.monotonic() + limit_s
    while True:
        value = found()
        if value is not None and value is not False:
            return value
        assert time.monotonic() < end, f"waited {limit_s:.0f} s for {what}"
        time.sleep(0.005)


class Home:
    """One state folder and what belongs to it."""

    limit_s = LIMIT_S

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.paths = Paths(state=folder / "state", config=folder / "stoker.toml")
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("STOKER", "XDG_"))},
            "STOKER_STATE": str(self.paths.state), "STOKER_CONFIG": str(self.paths.config), "NO_COLOR": "1",
        }  # fmt: skip
        self.prefix: tuple[str, ...] = ()  # words that lead into other namespaces, or to another user
        self.configure()

    def configure(self, more: str = "", gateway: str = "port = 0", limits: str = "") -> None:
        """Writes stoker.toml; the gateway takes a free port."""
        self.paths.config.write_text(f"[gateway]\n{gateway}\n[limits]\n{limits}\n{more}\n")

    def run(self, *words: str, code: int | None = 0, **more: Any) -> subprocess.CompletedProcess[str]:
        """Runs a verb to its end; fails where its exit code is another."""
        argv = [*self.prefix, sys.executable, "-m", "stoker", *words]
        done = subprocess.run(argv, env=self.environment, capture_output=True, text=True, timeout=self.limit_s * 2, **more)
        if code is not None:
            assert done.returncode == code, f"{words} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
        assert "\nTraceback" not in f"\n{done.stderr}", done.stderr  # our own: an engine's last words stand further in
        return done

    def json(self, *words: str) -> Any:
        """Runs a verb with --json and returns what it printed."""
        return json.loads(self.run(*words, "--json").stdout)

    def add_fake(self, name: str, more: str = "", **script: Any) -> Path:
        """Adds a service whose engine is scripted; returns the folder that holds its script and gates.

        It answers a chat and little else, so it has no gate unless `more` says so.
        """
        folder = self.folder / name
        self._add_service(
            name, write_fake_engine(folder, Script(**script)), more if "gate = " in more else f"gate = []\n{more}"
        )
        return folder

    def add_liar(self, name: str, more: str = "", *lies: str) -> Path:
        """Adds a service whose engine does all that clients ask, but for its lies; returns the folder that says them."""
        folder = self.folder / name
        self._add_service(name, write_lying_engine(folder, *lies), more)
        return folder

    def _add_service(self, name: str, program: Path, more: str) -> None:
        table = f'[service.{name}]\nmodel = "{demo_model()}"\nserver = "{program}"\n{more}\n'
        self.paths.config.write_text(self.paths.config.read_text() + table)

    @property
    def daemon(self) -> Daemon:
        """The running daemon."""
        daemon = find_daemon(self.paths)
        assert daemon is not None, "no daemon runs"
        return daemon

    @property
    def daemon_answers(self) -> bool:
        """Tells whether a daemon runs and takes requests."""
        return find_daemon(self.paths) is not None

    @property
    def daemon_pid(self) -> int | None:
        """The pid of the daemon that holds the state folder."""
        owner = read_owner(self.paths)
        return owner.pid if owner else None

    def service(self, name: str) -> ServiceView:
        """A service as the daemon tells it."""
        return next(view for view in self.daemon.status().services if view.name == name)

    def await_state(self, name: str, *states: State) -> ServiceView:
        """Waits until a service is in one of the states."""
        end = time.monotonic() + self.limit_s
        wait_for(f"{name} to be known", lambda: any(one.name == name for one in self.daemon.status().services))
        view = self.service(name)
        while view.state not in states:
            assert time.monotonic() < end, f"{name} is {view.state} ({view.why}), not {states}"
            view = self.daemon.wait(name, view.state, 1.0)
        return view

    def engines(self) -> dict[int, str]:
        """All living engine processes of this home: pid and launch marker."""
        return dict(find_marked(instance_of(self.paths) + "/"))

    def kill_daemon(self) -> None:
        """Kills the daemon with -9 and waits until it is gone."""
        pid = self.daemon_pid
        assert pid is not None
        # Not os.kill: with a prefix the pid means something in that namespace alone.
        subprocess.run([*self.prefix, "kill", "-9", str(pid)], check=True)
        wait_for("the daemon's end", lambda: read_owner(self.paths) is None)

    def end(self) -> dict[int, str]:
        """Takes everything down; returns the engines that `stoker down` left behind, after killing them."""
        self.run("down", code=None)
        left = self.engines()
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        return left
