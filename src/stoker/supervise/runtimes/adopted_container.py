"""A container that somebody else started: watched and stopped through its engine, never started again and never removed."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from stoker.errors import Refused
from stoker.launch.keys import read_key
from stoker.plan.adopting_container import variables_of_container, words_of_container
from stoker.records import Handle
from stoker.supervise.containers.api import DockerApi, EngineSilent
from stoker.supervise.containers.calls import Document, end_container, inspect, is_running
from stoker.supervise.containers.log import ContainerLog
from stoker.supervise.containers.running import ContainerRunning
from stoker.supervise.containers.sockets import find_engines, need_engines
from stoker.supervise.held import with_held
from stoker.supervise.runtimes import Running, Start


class RunningAdoptedContainer(ContainerRunning):
    """A container with the key that its engine asks of its clients, if any; it is kept nowhere."""

    def __init__(self, api: DockerApi, found: Document, log: Path) -> None:
        container = str(found["Id"])
        has_terminal = bool(found["Config"].get("Tty"))  # as `docker run -t` makes it
        copied = ContainerLog(api, container, log, has_terminal)
        super().__init__(api, container, found["State"].get("Pid") or None, copied)
        variables = [f"{name}={value}" for name, value in variables_of_container(found).items()]
        self.key = read_key(words_of_container(found), variables)


class AdoptedContainerRuntime:
    """Takes a running container over, by its id."""

    def __init__(self, container: str, log: Path) -> None:
        self._container = container
        self._log = log

    async def start(self, start: Start, handle: Handle, save: Callable[[Handle], None]) -> Running:
        """Returns the container while it runs; raises Refused once it has ended."""
        running = await self._attach()
        if running is None:
            raise Refused(
                "the container that was adopted has ended",
                why="Stoker starts nothing again that it did not start itself",
                next_step="start it as before and `stoker adopt` it again, or make a service of it: `stoker import`",
            )
        found = msgspec.structs.replace(handle, pid=running.pid, start_ticks=running.start_ticks, container=self._container)
        save(await asyncio.to_thread(with_held, found, running.pids()))
        return running

    async def find(self, handle: Handle) -> Running | None:
        """Returns the container while it runs; its id is nobody else's."""
        return await self._attach()

    async def _attach(self) -> RunningAdoptedContainer | None:
        for api in find_engines():
            with contextlib.suppress(EngineSilent):
                found = await inspect(api, self._container)
                if found and is_running(found):
                    return RunningAdoptedContainer(api, found, self._log)
        return None

    async def stop(self, running: Running | None, grace_s: float, kill_limit_s: float) -> str:
        """Stops the container, which also ends its restarts, and leaves it where it is; returns what outlived that.

        One that was not taken over yet is not ours to stop.
        """
        for api in find_engines() if running is not None else ():
            with contextlib.suppress(EngineSilent):
                await end_container(api, self._container, grace_s, kill_limit_s)
                if is_running(await inspect(api, self._container)):
                    return f"container {self._container[:12]}"
        return ""

    async def keep_good(self, running: Running, image: str) -> None:
        """Keeps nothing: its image is its owner's."""


async def read_container(name: str) -> tuple[DockerApi, Document]:
    """Returns a container that runs, and the engine that has it; raises Refused where there is none of that name."""
    engines = need_engines(os.environ)
    for api in engines:
        found = await inspect(api, name)
        if found and is_running(found):
            return api, found
        if found:
            raise Refused(f"the container {name} does not run", next_step="start it first, or name one that runs")
    raise Refused(
        f"there is no container `{name}`",
        why=f"{' and '.join(api.socket for api in engines)} knows none of that name",
        next_step="`docker ps` (or `podman ps`) lists those that run; a process is named by its pid",
    )
