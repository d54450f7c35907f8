"""A real podman with its service, and the runtime that speaks to it: shell programs and engines run in containers."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import stoker
from real_tools import LIMIT_S, OwnPodman, need
from stoker.facts.machine.ports import pick_free_port
from stoker.records import Handle, Plan
from stoker.supervise.containers.api import DockerApi
from stoker.supervise.containers.running import ContainerRunning
from stoker.supervise.process import read_boot_id
from stoker.supervise.runtimes import Runtime, Start
from stoker.supervise.runtimes.container import ContainerRuntime
from support import make_plan

IMAGE = "localhost/tiny:1"
INSTANCE = "test1"
GRACE_S, KILL_LIMIT_S = 5.0, 20.0
SLEEP = "exec /usr/bin/sleep 600"
OBEDIENT = "trap 'echo last words; exit 0' TERM; while :; do /usr/bin/sleep 0.05; done"


class Service:
    """`podman system service` on a socket of its own, which can end and come back."""

    def __init__(self, podman: OwnPodman, folder: Path, **more: str) -> None:
        self.socket = folder / "p.sock"
        self._environment = {**os.environ, **podman.environment, **more}
        self._log = folder / "service.log"
        self._running: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        """What tells the runtime where the socket is."""
        return {"DOCKER_HOST": f"unix://{self.socket}"}

    def start(self) -> None:
        """Starts it, and waits until the socket is there."""
        argv = (need("podman"), "system", "service", "--time=0", f"unix://{self.socket}")
        with self._log.open("ab") as log:
            self._running = subprocess.Popen(argv, env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        end = time.monotonic() + LIMIT_S
        while not self._answers():
            assert time.monotonic() < end and self._running.poll() is None, self._log.read_text()
            time.sleep(0.02)

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as ours:
            return ours.connect_ex(str(self.socket)) == 0

    def hang(self) -> None:
        """Lets it answer nothing any more, with its socket open."""
        assert self._running is not None
        self._running.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._running.pid, os.WSTOPPED | os.WNOWAIT)

    def end(self) -> None:
        """Ends it as a crash would; containers live on."""
        if self._running is not None:
            self._running.kill()
            self._running.wait(timeout=LIMIT_S)
            self._running = None
        self.socket.unlink(missing_ok=True)


class ContainerHome:
    """A podman with a small image, its service, and a folder for what a test writes."""

    def __init__(self, podman: OwnPodman, service: Service, folder: Path) -> None:
        self.podman = podman
        self.service = service
        self.folder = folder
        self.model = folder / "models" / "m.gguf"
        self.model.parent.mkdir()
        self.model.write_bytes(b"GGUF")
        self.saved: list[Handle] = []
        self._launches = 0

    @property
    def api(self) -> DockerApi:
        """The engine's API."""
        return DockerApi(str(self.service.socket))

    def log(self, service: str = "small") -> Path:
        """Returns the file that a service's output goes to."""
        return self.folder / "logs" / f"{service}.log"

    def runtime(self, service: str = "small", instance: str = INSTANCE, has_gpu: bool = False) -> ContainerRuntime:
        """Returns a runtime as a daemon makes one."""
        made = ContainerRuntime(instance, service, self.log(service), has_gpu, self.service.environment)
        _: Runtime = made  # as hands know it
        return made

    def plan(self, script: str, **changes: Any) -> Plan:
        """Returns a plan whose program is a shell script; the engine's words are its arguments."""
        facts = {
            "image": IMAGE, "program": ("/bin/sh", "-c", script), "model_path": str(self.model),
            "mounts": (("/usr", "/usr:ro"),),
        }  # fmt: skip
        return make_plan(**{**facts, **changes})

    async def start(self, script: str, runtime: ContainerRuntime | None = None, **changes: Any) -> ContainerRunning:
        """Starts a plan; every handle that was saved on the way is in `saved`."""
        self._launches += 1
        plan = self.plan(script, **changes)
        port = plan.port or pick_free_port("127.0.0.1")
        marker = f"{INSTANCE}/{plan.service}/{self._launches}"
        start = Start(plan, self._launches, marker, port, "s3cret-key", self.log(plan.service), self.folder)
        handle = Handle(self._launches, marker, None, None, read_boot_id(), port, 0)
        return await (runtime or self.runtime(plan.service)).start(start, handle, self.saved.append)

    async def ended(self, script: str) -> tuple[str, bytes]:
        """Runs a script to its end: how it ended, and what is in its log."""
        running = await self.start(script)
        how = await running.wait()
        assert not running.is_alive()
        assert running.memory_bytes() is None
        assert await self.runtime().stop(running, GRACE_S, KILL_LIMIT_S) == ""
        assert self.names() == []
        text = self.log().read_bytes()
        self.log().unlink()
        return how, text

    def names(self) -> list[str]:
        """Returns the names of all containers, running or not."""
        return sorted(self.podman("ps", "--all", "--format", "{{.Names}}").split())


@contextmanager
def container_home(podman: OwnPodman, folder: Path, **more: str) -> Iterator[ContainerHome]:
    """Gives a home whose containers end with it."""
    podman.make_image(IMAGE, {})
    service = Service(podman, podman.folder, **more)
    service.start()
    try:
        yield ContainerHome(podman, service, folder)
    finally:
        service.end()
        podman("rm", "--all", "--force", "--time", "0")


def places() -> tuple[tuple[str, str], ...]:
    """The folders that a Python with the engine in it needs, each where it is."""
    needed = {"/usr", "/lib", "/lib64", sys.prefix, sys.base_prefix, str(Path(stoker.__file__).parent.parent)}
    there = sorted(folder for folder in needed if Path(folder).exists())
    apart = [one for one in there if not any(one.startswith(f"{other}/") for other in there)]
    return tuple((folder, f"{folder}:ro") for folder in apart)
