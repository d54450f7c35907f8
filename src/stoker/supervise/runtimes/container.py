"""Engines in containers, through the API of docker or podman. A container is one launch: none is ever restarted."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import psutil

from stoker.errors import StokerError
from stoker.launch.container_api import LABEL_IMAGE, LABEL_INSTANCE, LABEL_LAUNCH, LABEL_SERVICE, render_create
from stoker.launch.from_plan import launch_of, supervised_container_of
from stoker.records import ContainerLaunch, Handle
from stoker.supervise.container_checks import check_gpus, check_mounts, free_name, without_secrets
from stoker.supervise.container_engines import find_engines, need_engines
from stoker.supervise.container_limits import cap_ulimits, read_hard_limits
from stoker.supervise.container_log import ContainerLog
from stoker.supervise.containers import (
    Document,
    await_stopped,
    describe_end,
    end_container,
    find_labelled,
    inspect,
    is_running,
    remove_container,
)
from stoker.supervise.docker_api import ApiProblem, DockerApi
from stoker.supervise.images import name_of, need_image
from stoker.supervise.process import read_boot_id, read_start_ticks
from stoker.supervise.runtimes import Start

START_LIMIT_S = 300.0  # a first start may have to lay out an image of 30 GB
ASK_S = 1.0
ORPHAN_GRACE_S, ORPHAN_KILL_LIMIT_S = 15.0, 10.0
logger = logging.getLogger("stoker.supervise")


class ContainerRunning:
    """A container that was started, by this daemon or a former one."""

    def __init__(self, api: DockerApi, container: str, pid: int | None, log: ContainerLog) -> None:
        self.api = api
        self.container = container
        self._start_ticks = read_start_ticks(pid) if pid else None
        self._pid = pid if self._start_ticks is not None else None  # None too where its engine lives in a machine of its own
        self._log = log
        self._has_ended = False
        self._closed = asyncio.Event()

    @property
    def pid(self) -> int | None:
        """Its first process."""
        return self._pid

    @property
    def start_ticks(self) -> int | None:
        """When that process started, in clock ticks since boot."""
        return self._start_ticks

    async def wait(self) -> str:
        """Copies its output until it has ended, and says how it did; raises nothing."""
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(self._log.follow())
            await self._await_end()
            following.cancel()
        try:
            await await_stopped(self.api, self.container)
            await self._log.read_rest()
            how = describe_end(await inspect(self.api, self.container))
        except StokerError as problem:
            how = f"ended; how, its container engine does not tell: {problem.what}"
        self._has_ended = True
        return how

    async def _await_end(self) -> None:
        """Waits for its first process, since the kernel answers where a container engine may not."""
        if self._pid is None:
            await self._ask_for_end()
            return
        try:
            pidfd = os.pidfd_open(self._pid)
        except OSError:
            return
        try:
            if self._lives():
                await _await_readable(pidfd)
        finally:
            os.close(pidfd)

    async def _ask_for_end(self) -> None:
        while True:
            try:
                if not is_running(await inspect(self.api, self.container)):
                    return
            except StokerError:
                logger.warning("container=%s its engine does not answer", self.container[:12])
            await asyncio.sleep(ASK_S)

    def _lives(self) -> bool:
        return self._pid is not None and read_start_ticks(self._pid) == self._start_ticks

    def is_alive(self) -> bool:
        """Tells whether it still runs, by its first process, without asking anybody."""
        return self._lives() if self._pid is not None else not self._has_ended

    def memory_bytes(self) -> int | None:
        """Returns the resident bytes of its first process and of all those that it started."""
        if not self._lives():
            return None
        try:
            first = psutil.Process(self._pid)
            return sum(_resident_bytes(one) for one in (first, *first.children(recursive=True)))
        except psutil.Error:
            return None

    def close(self) -> None:
        """Lets go of it; nothing of it is held between two calls."""


def _resident_bytes(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


async def _await_readable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(fd, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(fd)


class ContainerRuntime:
    """Starts, finds and ends the containers of one service.

    `log` is the service's file; without `has_gpu` no GPU is asked for. `environment` says where the engine's socket is.
    """

    def __init__(
        self, instance: str, service: str, log: Path, has_gpu: bool, environment: Mapping[str, str] = os.environ
    ) -> None:
        self._labels = {LABEL_INSTANCE: instance, LABEL_SERVICE: service}
        self._log = log
        self._has_gpu = has_gpu
        self._environment = environment

    async def start(self, start: Start, handle: Handle, save: Callable[[Handle], None]) -> ContainerRunning:
        """Starts a container by its planned image, argv and mounts, which have to be here; raises StokerError."""
        launch = supervised_container_of(start.plan, start.port, start.marker, self._has_gpu)
        check_mounts(launch)
        api, image = await need_image(need_engines(self._environment), launch.image, start.plan.service)
        await check_gpus(api, launch)
        await free_name(api, launch.name, self._labels[LABEL_INSTANCE])
        labels = (*launch.labels, (LABEL_IMAGE, name_of(image)))
        ulimits = cap_ulimits(launch.ulimits, read_hard_limits(api.socket))
        launch = msgspec.structs.replace(launch, image=image["Id"], labels=labels, ulimits=ulimits)
        key_variable = launch_of(start.plan, start.port).key_variable
        secrets = {key_variable: start.key} if key_variable else {}
        with without_secrets(secrets):
            handle = await self._start_one(api, launch, secrets, handle, save)
        return await self._started(api, handle, save)

    async def _start_one(
        self, api: DockerApi, launch: ContainerLaunch, secrets: dict[str, str], handle: Handle,
        save: Callable[[Handle], None],
    ) -> Handle:  # fmt: skip
        """Creates the container, saves its id, and only then starts it."""
        body = render_create(launch, secrets, by_cdi=await api.podman_version() is not None)
        made = await api.call("POST", "/containers/create", body, name=launch.name)
        if not made:
            raise StokerError(f"{launch.name} could not be created", why="its image was removed meanwhile")
        handle = msgspec.structs.replace(handle, container=made["Id"])
        save(handle)
        try:
            await api.call("POST", f"/containers/{made['Id']}/start", limit_s=START_LIMIT_S)
        except ApiProblem:
            await remove_container(api, made["Id"])
            raise
        return handle

    async def _started(self, api: DockerApi, handle: Handle, save: Callable[[Handle], None]) -> ContainerRunning:
        running = self._running(api, str(handle.container), await inspect(api, str(handle.container)))
        save(msgspec.structs.replace(handle, pid=running.pid, start_ticks=running.start_ticks))
        return running

    def _running(self, api: DockerApi, container: str, found: Document | None) -> ContainerRunning:
        pid = found["State"].get("Pid") if found else None
        return ContainerRunning(api, container, pid or None, ContainerLog(api, container, self._log))

    async def find(self, handle: Handle) -> ContainerRunning | None:
        """Returns the container of a handle if it carries the handle's launch and still runs.

        Where its engine does not answer, the very process that was started then is proof enough.
        """
        if handle.container is None or handle.boot_id != read_boot_id():
            return None
        lives = handle.pid is not None and read_start_ticks(handle.pid) == handle.start_ticks is not None
        for api in find_engines(self._environment):
            try:
                found = await inspect(api, handle.container)
            except StokerError:
                if lives:
                    log = ContainerLog(api, handle.container, self._log)
                    return ContainerRunning(api, handle.container, handle.pid, log)
                continue
            if found and is_running(found) and _label(found, LABEL_LAUNCH) == handle.marker:
                return self._running(api, handle.container, found)
        return None

    async def stop(self, running: ContainerRunning | None, grace_s: float, kill_limit_s: float) -> str:
        """Ends and removes every container of the service; returns the names of those that outlived even that."""
        left: list[str] = []
        for api in find_engines(self._environment):
            try:
                left += await _end_all(api, self._labels, grace_s, kill_limit_s)
            except StokerError:
                if running is not None and running.api.socket == api.socket and running.is_alive():
                    raise
        return ", ".join(left)


async def _end_all(api: DockerApi, labels: Mapping[str, str], grace_s: float, kill_limit_s: float) -> list[str]:
    for found in await find_labelled(api, labels):
        await end_container(api, found["Id"], grace_s, kill_limit_s)
    return [f"container {found['Names'][0].lstrip('/')}" for found in await find_labelled(api, labels)]


def _label(found: Document, name: str) -> str | None:
    return (found["Config"].get("Labels") or {}).get(name)


async def end_orphan_containers(
    instance: str, known_services: frozenset[str], environment: Mapping[str, str] = os.environ
) -> list[str]:
    """Ends the containers of this state folder that belong to none of its services, and returns their names."""
    ended: list[str] = []
    for api in find_engines(environment):
        try:
            for found in await find_labelled(api, {LABEL_INSTANCE: instance}):
                if found["Labels"].get(LABEL_SERVICE) not in known_services:
                    await end_container(api, found["Id"], ORPHAN_GRACE_S, ORPHAN_KILL_LIMIT_S)
                    ended.append(found["Names"][0].lstrip("/"))
        except StokerError as problem:  # an engine that does not run now runs no container, or tells the next daemon
            logger.warning("containers of former services were not looked for: %s", problem.what)
    return ended
