"""One container that runs: waited for by its first process, its output copied, its end explained."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os

import psutil

from stoker.errors import StokerError
from stoker.supervise.containers.api import DockerApi
from stoker.supervise.containers.calls import await_stopped, describe_end, inspect, is_running
from stoker.supervise.containers.log import ContainerLog
from stoker.supervise.process import read_start_ticks

ASK_S = 1.0
TOLD_LIMIT_S = 45.0
logger = logging.getLogger("stoker.supervise")


class ContainerRunning:
    """A container that was started, by this daemon or a former one."""

    def __init__(self, api: DockerApi, container: str, pid: int | None, log: ContainerLog) -> None:
        self.api = api
        self.container = container
        self._start_ticks = read_start_ticks(pid) if pid else None
        self._pid = pid if self._start_ticks is not None else None  # None too where its engine lives in a machine of its own
        self._log = log
        self._is_waited_for = False
        self._how: str | None = None
        self._told = asyncio.Event()

    @property
    def pid(self) -> int | None:
        """Its first process."""
        return self._pid

    @property
    def start_ticks(self) -> int | None:
        """When that process started, in clock ticks since boot."""
        return self._start_ticks

    def pids(self) -> list[int]:
        """Lists its first process and those that came of it."""
        return [one.pid for one in self._family()]

    async def wait(self) -> str:
        """Copies its output until it has ended, and says how it did; raises nothing."""
        self._is_waited_for = True
        try:
            async with asyncio.TaskGroup() as tasks:
                following = tasks.create_task(self._log.follow())
                await self._await_end()
                following.cancel()
            self._how = await self._read_end()
        finally:
            self._is_waited_for = False
            self._told.set()
        return self._how

    async def _read_end(self) -> str:
        try:
            await await_stopped(self.api, self.container)
            await self._log.read_rest()
            return describe_end(await inspect(self.api, self.container))
        except StokerError as problem:
            return f"ended; how, its container engine does not tell: {problem.what}"

    async def await_told(self) -> None:
        """Returns when its last words are copied, after it has ended: with the container they are gone."""
        if not self._is_waited_for:
            await self._log.read_rest()
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TOLD_LIMIT_S):
                await self._told.wait()

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
        return self._lives() if self._pid is not None else self._how is None

    def memory_bytes(self) -> int | None:
        """Returns the resident bytes of its first process and of all those that it started."""
        family = self._family()
        return sum(map(_resident_bytes, family)) if family else None

    def _family(self) -> list[psutil.Process]:
        try:
            first = psutil.Process(self._pid) if self._lives() else None
            return [first, *first.children(recursive=True)] if first else []
        except psutil.Error:
            return []

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
