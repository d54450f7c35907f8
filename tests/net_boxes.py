"""Boxes for tests: network namespaces with a cable each to one switch, and in each a Stoker of its own."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from home import Home, wait_for
from lossy_wire import Wire, open_tap
from stoker.records.boxes import BoxesView

NEW_NET = 0x40000000  # CLONE_NEWNET
LIBC = ctypes.CDLL(None, use_errno=True)
PORT, GATEWAY_PORT = 8701, 8700
NUMBERS = itertools.count()


def may_make_namespaces() -> bool:
    """Tells whether this machine lets us make networks of our own."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    name = f"stoker-try-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode == 0
    subprocess.run(["ip", "netns", "del", name], capture_output=True)
    return made


def may_wire() -> bool:
    """Tells whether this machine lets us make wires of our own."""
    try:
        os.close(open_tap(f"try{os.getpid()}"))
    except OSError:
        return False
    return True


IN_NAMESPACES = pytest.mark.elsewhere(may_make_namespaces(), "network namespaces, which root can make")
OVER_WIRES = pytest.mark.elsewhere(may_wire(), "TAP devices (/dev/net/tun), which root can make")


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@contextlib.contextmanager
def inside(namespace: str) -> Iterator[None]:
    """Has this thread be in a network meanwhile."""
    outside = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    try:
        assert LIBC.setns(there, NEW_NET) == 0, os.strerror(ctypes.get_errno())
        yield
    finally:
        assert LIBC.setns(outside, NEW_NET) == 0, os.strerror(ctypes.get_errno())
        os.close(there)
        os.close(outside)


class Box(Home):
    """One box: its namespace, its address, its Stoker."""

    def __init__(self, folder: Path, name: str, namespace: str, address: str) -> None:
        folder.mkdir()
        self.name, self.namespace, self.address = name, namespace, address
        super().__init__(folder)
        self.prefix = ("ip", "netns", "exec", namespace)

    def configure(self, more: str = "", gateway: str = f"port = {GATEWAY_PORT}", limits: str = "") -> None:
        boxes = f'[boxes]\nhost = "{self.address}"\nport = {PORT}\nname = "{self.name}"\n'
        super().configure(boxes + more, gateway, limits)

    @property
    def url(self) -> str:
        return f"https://{self.address}:{PORT}"

    def inside(self) -> contextlib.AbstractContextManager[None]:
        """Has this thread be in the box's network meanwhile; sockets stay in the one where they were made."""
        return inside(self.namespace)

    @contextlib.contextmanager
    def client(self, limit_s: float = 60.0) -> Iterator[httpx.Client]:
        """A client on this box, of its own door."""
        headers = {"authorization": f"Bearer {self.paths.key_file.read_text().strip()}"}
        with (
            self.inside(),
            httpx.Client(base_url=f"http://127.0.0.1:{GATEWAY_PORT}", headers=headers, timeout=limit_s) as one,
        ):
            yield one

    def chat(self, model: str = "stoker-demo", max_tokens: int = 8, **more: Any) -> httpx.Response:
        with self.client() as client:
            return client.post("/v1/chat/completions", json=question(model, max_tokens), **more)

    def boxes(self) -> BoxesView:
        with self.inside():
            return self.daemon.boxes()

    def sees(self, name: str, is_here: bool = True) -> bool:
        return any(one.name == name and one.is_here is is_here for one in self.boxes().boxes)

    def serves(self, other: Box, service: str = "demo") -> bool:
        """Tells whether this box's door knows that another one serves a model."""
        found = [one for box in self.boxes().boxes if box.name == other.name for one in box.replicas]
        return any(one.service == service and one.state == "READY" for one in found)

    def join(self, other: Box, *words: str) -> None:
        """Joins another box by a code that is carried there."""
        code = other.json("boxes", "code", *words)["code"]
        self.run("boxes", "add", other.name, other.url, input=code)
        wait_for(f"{other.name} to be heard", lambda: self.sees(other.name), 5.0)


def question(model: str = "stoker-demo", max_tokens: int = 8, **more: Any) -> dict[str, Any]:
    return {"model": model, "max_tokens": max_tokens, "messages": [{"role": "user", "content": "Who are you?"}], **more}


class Network:
    """A switch with boxes on it."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._id = folder, f"s{os.getpid()}n{next(NUMBERS)}"
        self.boxes: dict[str, Box] = {}
        self._wires: list[Wire] = []
        ip("netns", "add", self._id)
        ip("-n", self._id, "link", "add", "switch", "type", "bridge")
        ip("-n", self._id, "link", "set", "switch", "up")

    def add(self, name: str) -> Box:
        """Adds a box with a cable to the switch."""
        box = self._make(name)
        far = ("link", "add", "eth0", "type", "veth", "peer", "name", f"port-{name}", "netns", self._id)
        ip("-n", box.namespace, *far)
        self._plug(box)
        return box

    def add_far(self, name: str, seed: int = 1) -> tuple[Box, Wire]:
        """Adds a box with a wire to the switch that can be told to be bad; `out` is to the box."""
        box = self._make(name)
        with inside(self._id):
            near = open_tap(f"port-{name}")
        with inside(box.namespace):
            far = open_tap("eth0")
        wire = Wire(near, far, seed)
        self._wires.append(wire)
        self._plug(box)
        return box, wire

    def _make(self, name: str) -> Box:
        space, address = f"{self._id}{name}", f"10.77.0.{len(self.boxes) + 1}"
        ip("netns", "add", space)
        box = self.boxes[name] = Box(self._folder / name, name, space, address)
        return box

    def _plug(self, box: Box) -> None:
        ip("-n", self._id, "link", "set", f"port-{box.name}", "master", "switch", "up")
        ip("-n", box.namespace, "addr", "add", f"{box.address}/24", "dev", "eth0")
        ip("-n", box.namespace, "link", "set", "eth0", "up")
        ip("-n", box.namespace, "link", "set", "lo", "up")

    def cable(self, box: Box, state: str) -> None:
        """Pulls a box's cable out at the switch (`down`), or puts it in again (`up`); the box itself is not told."""
        ip("-n", self._id, "link", "set", f"port-{box.name}", state)

    def end(self) -> dict[int, str]:
        """Ends all boxes; returns the engines that were left."""
        left: dict[int, str] = {}
        for wire in self._wires:
            wire.be()
        for box in self.boxes.values():
            self.cable(box, "up")
            left |= box.end()
            ip("netns", "del", box.namespace)
        for wire in self._wires:
            wire.close()
        ip("netns", "del", self._id)
        return left


class Trio(NamedTuple):
    """The network, the door and the two that serve."""

    net: Network
    a: Box
    b: Box
    c: Box
