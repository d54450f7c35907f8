"""Engines in containers, through the API of docker or podman. A container is one launch: none is ever restarted."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from stoker.errors import Refused, StokerError
from stoker.launch.container_api import LABEL_IMAGE, LABEL_INSTANCE, LABEL_LAUNCH, LABEL_SERVICE, render_create
from stoker.launch.from_plan import launch_of, supervised_container_of
from stoker.records import ContainerLaunch, GoodImage, Handle
from stoker.supervise.containers.api import ApiProblem, DockerApi, EngineSilent, silent
from stoker.supervise.containers.calls import (
    Document,
    end_container,
    find_labelled,
    inspect,
    is_running,
    remove_container,
)
from stoker.supervise.containers.checks import advise, check_gpus, check_mounts, free_name, with_real_paths, without_secrets
from stoker.supervise.containers.images import good_image, inspect_image, keep_image, name_of, need_image
from stoker.supervise.containers.limits import cap_ulimits, read_hard_limits
from stoker.supervise.containers.log import ContainerLog
from stoker.supervise.containers.running import ContainerRunning
from stoker.supervise.containers.sockets import find_engines, first_engine, need_engines
from stoker.supervise.process import read_boot_id, read_start_ticks
from stoker.supervise.runtimes import Running, Start

START_LIMIT_S = 300.0  # a first start may have to lay out an image of 30 GB
ORPHAN_GRACE_S, ORPHAN_KILL_LIMIT_S = 15.0, 10.0
logger = logging.getLogger("stoker.supervise")


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
        plan = with_real_paths(start.plan)
        launch = supervised_container_of(plan, start.port, start.marker, self._has_gpu)
        check_mounts(launch)
        api, image = await need_image(need_engines(self._environment), launch.image, plan.service)
        await check_gpus(api, launch)
        await free_name(api, launch.name, self._labels[LABEL_INSTANCE])
        labels = (*launch.labels, (LABEL_IMAGE, name_of(image)))
        ulimits = cap_ulimits(launch.ulimits, read_hard_limits(api.socket))
        launch = msgspec.structs.replace(launch, image=image["Id"], labels=labels, ulimits=ulimits)
        key_variable = launch_of(plan, start.port).key_variable
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
        except ApiProblem as problem:
            with contextlib.suppress(StokerError):  # what went wrong first is what has to be said
                await remove_container(api, made["Id"])
            raise advise(problem) from None
        return handle

    async def _started(self, api: DockerApi, handle: Handle, save: Callable[[Handle], None]) -> ContainerRunning:
        found = await inspect(api, str(handle.container))
        if found is None:
            raise StokerError("the container was removed before it ran", why="somebody else ended it")
        running = self._running(api, found)
        save(msgspec.structs.replace(handle, pid=running.pid, start_ticks=running.start_ticks))
        return running

    def _running(self, api: DockerApi, found: Document) -> ContainerRunning:
        container, pid = found["Id"], found["State"].get("Pid") or None
        return ContainerRunning(api, container, pid, ContainerLog(api, container, self._log))

    async def find(self, handle: Handle) -> ContainerRunning | None:
        """Returns the container of a handle if it carries the handle's launch and still runs.

        Where no engine has it, for want of a socket maybe, the very process that was started then is proof enough.
        """
        if handle.container is None or handle.boot_id != read_boot_id():
            return None
        for api in find_engines(self._environment):
            with contextlib.suppress(StokerError):
                found = await inspect(api, handle.container)
                if found and is_running(found) and _label(found, LABEL_LAUNCH) == handle.marker:
                    return self._running(api, found)
                if found:
                    return None
        return self._find_by_process(handle, handle.container)

    def _find_by_process(self, handle: Handle, container: str) -> ContainerRunning | None:
        if handle.pid is None or handle.start_ticks is None or read_start_ticks(handle.pid) != handle.start_ticks:
            return None
        api = first_engine(self._environment)
        return ContainerRunning(api, container, handle.pid, ContainerLog(api, container, self._log))

    async def stop(self, running: Running | None, grace_s: float, kill_limit_s: float) -> str:
        """Ends and removes every container of the service; returns the names of those that outlived even that."""
        left: list[str] = []
        own = running if isinstance(running, ContainerRunning) else None
        for api in find_engines(self._environment):
            with contextlib.suppress(EngineSilent, Refused):  # one that does not run has no container; or see below
                left += await self._end_all(api, own, grace_s, kill_limit_s)
        if own is not None and own.is_alive() and not left:
            raise silent(own.api.socket, "the container still runs, and nobody else can end it")
        return ", ".join(left)

    async def _end_all(
        self, api: DockerApi, running: ContainerRunning | None, grace_s: float, kill_limit_s: float
    ) -> list[str]:
        for found in await find_labelled(api, self._labels):
            await end_container(api, found["Id"], grace_s, kill_limit_s)
            if running is not None and running.container == found["Id"] and not running.is_alive():
                await running.await_told()
            await remove_container(api, found["Id"])
        return [f"container {found['Names'][0].lstrip('/')}" for found in await find_labelled(api, self._labels)]

    async def keep_good(self, running: Running, name: str) -> GoodImage | None:
        """Keeps the image of a container that is READY from being pruned; `name` is what the plan calls it.

        None where the container is gone already.
        """
        if not isinstance(running, ContainerRunning):
            return None
        found = await inspect(running.api, running.container)
        image = await inspect_image(running.api, found["Image"]) if found else None
        if image is None:
            return None
        service = self._labels[LABEL_SERVICE]
        await keep_image(running.api, service, image["Id"])
        return good_image(service, name, image)


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
                    await remove_container(api, found["Id"])
                    ended.append(found["Names"][0].lstrip("/"))
        except StokerError as problem:  # an engine that does not run now runs no container, or tells the next daemon
            logger.warning("containers of former services were not looked for: %s", problem.what)
    return ended
