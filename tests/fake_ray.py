"""A scripted Ray: the words of `ray start`, its processes and how they end, without its 200 MB and its 10 s.

As the real one (2.60.0) it stays in front, starts a head or joins one, says so, and ends with its children where one of
them does. An agent has no marker of ours, and outlives them all: so does the real DashboardAgent, which renames itself.
"""

from __future__ import annotations

import ctypes
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from fake_engine import write_program

STARTED = "2026-11-24 17:38:48,811 SUCC scripts.py:1251 -- Ray runtime started."
DIE_WITH_PARENT, SECOND = 1, 1.0
LISTEN, SHORT = "0.0.0.0", Path("/tmp")


def main(script_file: str, words: list[str]) -> None:
    """Starts a head or joins one, as `ray start` does, and stays."""
    del script_file
    options = {name: value for name, value in zip(words, [*words[1:], ""], strict=True) if name.startswith("--")}
    folder = Path(options["--temp-dir"])
    (folder / "session").mkdir()
    here = options["--node-ip-address"]
    head = "--head" in options
    if head:
        children = [_fork("gcs", options["--port"])]
        address = f"{here}:{options['--port']}"
    else:
        children, address = [], options["--address"]
    children.append(_fork("raylet", address))
    if _speak(address, f"join {here}") != "welcome":
        raise SystemExit("no head of Ray answers")
    print(STARTED, flush=True)
    while all(child.poll() is None for child in children):
        time.sleep(0.02)
    print("Some Ray subprocesses exited unexpectedly:", flush=True)
    raise SystemExit(1)


def _fork(role: str, said: str, *, marked: bool = True) -> subprocess.Popen[bytes]:
    words = [sys.executable, str(Path(__file__)), role, said]
    return subprocess.Popen(words, env=None if marked else {}, preexec_fn=_die_with_parent if marked else None)


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)


def _speak(address: str, said: str) -> str:
    """Says something to the head, and returns what it answers."""
    host, _, port = address.rpartition(":")
    end = time.monotonic() + 5.0
    while True:
        try:
            with socket.create_connection((host, int(port))) as one:
                one.sendall(f"{said}\n".encode())
                return one.makefile().readline().strip()
        except OSError:
            if time.monotonic() > end:
                return ""
            time.sleep(0.02)


def nodes_of(address: str) -> list[str]:
    """Returns the boxes that have joined a head."""
    return _speak(address, "nodes").split()


def _gcs(port: str) -> None:
    nodes: list[str] = []
    with socket.create_server((LISTEN, int(port))) as door:
        while True:
            one, _ = door.accept()
            with one:
                said = one.makefile().readline().split()
                if said[:1] == ["join"]:
                    nodes.append(said[1])
                one.sendall(b"welcome\n" if said[:1] == ["join"] else f"{' '.join(sorted(nodes))}\n".encode())


def _raylet(address: str) -> None:
    """Has an agent, and never notices that its head is gone: the real one takes a minute."""
    _fork("agent", address, marked=False)
    threading.Event().wait()


def _agent(address: str) -> None:
    threading.Event().wait()


def write_ray(folder: Path) -> Path:
    """Writes the program `ray` beside an engine's."""
    return write_program(folder / "ray", "fake_ray", folder / "no-script")


def remove_links(folder: Path) -> None:
    """Removes the links by which the sockets of a box with a long folder have short names."""
    for link in SHORT.glob("stoker-ray-*"):
        if link.is_symlink() and link.readlink().is_relative_to(folder):
            link.unlink()


if __name__ == "__main__":
    {"gcs": _gcs, "raylet": _raylet, "agent": _agent}[sys.argv[1]](sys.argv[2])
