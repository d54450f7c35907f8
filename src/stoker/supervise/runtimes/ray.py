"""An engine whose processes Ray starts on several boxes: Ray's own beside it on the head, and alone on the others."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from stoker.box import is_running
from stoker.errors import NotReadyInTime, Refused, StokerError
from stoker.facts.machine.ports import is_port_free, read_listener
from stoker.launch.process import MARKER_VARIABLE
from stoker.launch.ray import STARTED, as_ray, beside_ray, has_short_sockets, in_folder
from stoker.records import Handle, LaunchSpec
from stoker.records.ranks import Ray
from stoker.supervise.process import (
    SERVERS_SHARE,
    EngineProcess,
    Group,
    find_adopted,
    read_boot_id,
    read_start_ticks,
    start_engine,
    stop_group,
)
from stoker.supervise.runtimes import Running, Start
from stoker.supervise.runtimes.process import ProcessRuntime

T = TypeVar("T")
START_S, POLL_S = 120.0, 0.05  # a head was up after 8 s of a busy machine of two cores
LINKS = Path("/tmp")  # noqa: S108 - a link there, checked to be ours
EVERYWHERE = "0.0.0.0"  # where Ray's head listens, whatever its address


class RayEnded(StokerError):
    """Ray's head ended before the engine was started."""


class RunningBeside:
    """An engine's first process, and Ray's head, which lives as long."""

    def __init__(self, own: Running, ray: EngineProcess) -> None:
        self._own, self._ray = own, ray
        self._waiting: dict[asyncio.Task[str], Callable[[], None]] = {}

    @property
    def pid(self) -> int | None:
        """The engine's first process."""
        return self._own.pid

    async def wait(self) -> str:
        """Waits until either has ended and says how."""
        own, ray = asyncio.ensure_future(self._own.wait()), asyncio.ensure_future(self._ray.wait())
        self._waiting = {own: self._own.close, ray: self._ray.close}
        try:
            await asyncio.wait(self._waiting, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            own.cancel()
            ray.cancel()
            raise
        return own.result() if own.done() else f"Ray's head on this box: {ray.result()}"

    def is_alive(self) -> bool:
        """Tells whether both still run."""
        return self._own.is_alive() and is_running(self._ray.pid)

    def pids(self) -> list[int]:
        """Lists the processes of both."""
        return self._own.pids()

    def memory_bytes(self) -> int | None:
        """Adds up the processes of both."""
        return self._own.memory_bytes()

    def close(self) -> None:
        """Lets go of both, of one that has yet to end once it has."""
        if not self._waiting:
            self._own.close()
            self._ray.close()
        for task, close in self._waiting.items():
            if task.done():
                close()
            else:
                task.add_done_callback(partial(_let_go, close))


def _let_go(close: Callable[[], None], ended: asyncio.Task[str]) -> None:
    close()


class RayRuntime(ProcessRuntime):
    """Starts Ray's processes on a worker's box, and ends whatever they have started."""

    def __init__(self, instance: str, service: str, handle: Handle | None) -> None:
        super().__init__(instance, service, _sessions(handle))
        self._folder = ""

    async def start(self, start: Start, handle: Handle, save: Callable[[Handle], None]) -> Running:
        """Starts the process that joins the head and stays."""
        self._folder = await asyncio.to_thread(make_folder, start.folder)
        return await super().start(start, handle, save)

    def _render(self, start: Start) -> LaunchSpec:
        return in_folder(super()._render(start), self._folder)


class RayHeadRuntime(ProcessRuntime):
    """Starts Ray's head, and after it the engine, which works through it.

    Ray's processes carry a marker of their own, so that the engine can end first, and in peace.
    """

    def __init__(self, instance: str, service: str, ray: Ray, handle: Handle | None) -> None:
        super().__init__(instance, service, _sessions(handle))
        self._ray, self._handle = ray, handle

    async def start_head(self, start: Start, handle: Handle, save: Callable[[Handle], None]) -> EngineProcess:
        """Starts Ray's head and returns once it takes workers; nothing is awaited from its birth to the handle's saving."""
        _check_port(int(self._ray.address.rpartition(":")[2]))
        folder = await asyncio.to_thread(make_folder, start.folder)
        said_bytes = start.log.stat().st_size if start.log.exists() else 0
        spec = in_folder(as_ray(super()._render(start), self._ray), folder)
        head = start_engine(spec, {MARKER_VARIABLE: f"{self._prefix}ray/{start.launch}"}, start.log)
        self._handle = msgspec.structs.replace(handle, beside=(head.pid, read_start_ticks(head.pid) or 0))
        save(self._handle)
        await until_first_ends(head, _await_line(start.log, said_bytes))
        return head

    async def start_beside(self, head: EngineProcess, start: Start, save: Callable[[Handle], None]) -> Running:
        """Starts the engine, which finds all boxes through Ray's head."""
        if self._handle is None:
            raise StokerError("Ray's head was not started")
        self._sessions = _sessions(self._handle)
        own = await super().start(start, self._handle, save)
        return RunningBeside(own, head)

    def _render(self, start: Start) -> LaunchSpec:
        return beside_ray(super()._render(start))

    async def find(self, handle: Handle) -> Running | None:
        """Returns the engine of a handle where Ray's head lives too; one without the other is of no use."""
        own, head = find_adopted(handle), _find_head(handle)
        if own is not None and head is not None:
            return RunningBeside(self._running(own), head)
        for one in (own, head):
            if one is not None:
                one.close()
        return None

    async def stop(self, running: Running | None, grace_s: float, kill_limit_s: float) -> str:
        """Ends the engine, politely, and then Ray's processes, which have nothing to keep, by force."""
        if grace_s > 0 and self._handle is not None:
            group = Group(self._handle.marker, running.pid if running else None)
            await stop_group(group, grace_s, kill_limit_s, SERVERS_SHARE)
        return await super().stop(running, 0.0, kill_limit_s)


async def until_first_ends(head: EngineProcess, work: Coroutine[Any, Any, T]) -> T:
    """Returns what some work gives; raises RayEnded where Ray's head ends before it. A head that failed so is let go of."""
    try:
        return await _race(head, work)
    except BaseException:
        head.close()
        raise


async def _race(head: EngineProcess, work: Coroutine[Any, Any, T]) -> T:
    ended, working = asyncio.ensure_future(head.wait()), asyncio.ensure_future(work)
    try:
        await asyncio.wait((ended, working), return_when=asyncio.FIRST_COMPLETED)
    finally:
        ended.cancel()
        working.cancel()
        await asyncio.wait((ended, working))
    failed = working.exception() if not working.cancelled() else None
    if not ended.cancelled():
        raise RayEnded(f"Ray's head ended before the engine was started ({ended.result()})") from failed
    if failed is not None:
        raise failed
    return working.result()


def _sessions(handle: Handle | None) -> frozenset[int]:
    """The sessions of a launch. Ray's agents rename themselves, which overwrites their marker, and outlive their raylet."""
    if handle is None or handle.boot_id != read_boot_id():
        return frozenset()
    beside = handle.beside[0] if handle.beside else None
    return frozenset(pid for pid in (handle.pid, beside) if pid is not None)


def _find_head(handle: Handle) -> EngineProcess | None:
    if handle.beside is None:
        return None
    pid, ticks = handle.beside
    return find_adopted(msgspec.structs.replace(handle, pid=pid, start_ticks=ticks))


def make_folder(folder: Path) -> str:
    """Makes Ray's folder anew, for nobody reads what the last launch left there, and returns a path to it for its sockets.

    Where the folder's own is too long for them, that is a link in /tmp; raises Refused where somebody else made that.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
    if has_short_sockets(str(folder)):
        return str(folder)
    link = LINKS / f"stoker-ray-{hashlib.sha256(bytes(folder)).hexdigest()[:8]}"
    with contextlib.suppress(FileExistsError):
        link.symlink_to(folder)
    if link.lstat().st_uid != os.getuid() or not link.is_symlink() or link.readlink() != folder:
        raise Refused(f"{link} is not ours", why="it is to stand for Ray's folder", next_step="see who made it; remove it")
    return str(link)


def _check_port(port: int) -> None:
    if not is_port_free(EVERYWHERE, port):
        who = read_listener(port) or "another program, which does not let itself be seen"
        raise Refused(f"port {port}, where Ray's head listens, is taken by {who}", next_step="end it: `ray stop` ends a Ray")


async def _await_line(log: Path, from_bytes: int) -> None:
    """Returns once Ray's head has said that it is up; raises NotReadyInTime where it does not."""
    end = time.monotonic() + START_S
    while not re.search(STARTED, _read_from(log, from_bytes)):
        if time.monotonic() > end:
            raise NotReadyInTime(f"Ray's head did not start within {START_S:g} s")
        await asyncio.sleep(POLL_S)


def _read_from(log: Path, from_bytes: int) -> str:
    with log.open("rb") as source:
        source.seek(from_bytes if os.fstat(source.fileno()).st_size >= from_bytes else 0)  # it may have been rotated
        return source.read().decode(errors="replace")
