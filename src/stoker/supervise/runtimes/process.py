"""An engine as a process of this user's, with everything that it forks."""

from __future__ import annotations

import os
from collections.abc import Callable

import msgspec

from stoker.box import is_running
from stoker.launch.process import render_launch
from stoker.records import Handle, LaunchSpec
from stoker.supervise.process import (
    SERVERS_SHARE,
    EngineProcess,
    Group,
    find_adopted,
    read_group_memory,
    read_start_ticks,
    start_engine,
    stop_group,
)
from stoker.supervise.runtimes import Running, Start


class RunningProcess:
    """An engine's first process, and the group of all that belong to it."""

    def __init__(self, process: EngineProcess, group: Group) -> None:
        self._process = process
        self._group = group

    @property
    def pid(self) -> int:
        """Its first process."""
        return self._process.pid

    async def wait(self) -> str:
        """Waits until the first process has ended and says how."""
        return await self._process.wait()

    def is_alive(self) -> bool:
        """Tells whether the first process still runs."""
        return is_running(self.pid)

    def pids(self) -> list[int]:
        """Lists the processes of the group."""
        return self._group.pids()

    def memory_bytes(self) -> int | None:
        """Adds up the processes of the group."""
        return read_group_memory(self._group)

    def close(self) -> None:
        """Lets go of the process without ending it."""
        self._process.close()


class ProcessRuntime:
    """Starts processes whose environment carries the launch's marker, and ends all that carry one of the service."""

    def __init__(self, instance: str, service: str, sessions: frozenset[int] = frozenset()) -> None:
        self._prefix = f"{instance}/{service}/"
        self._sessions = sessions

    async def start(self, start: Start, handle: Handle, save: Callable[[Handle], None]) -> Running:
        """Starts the plan's program; nothing is awaited between its birth and the handle's saving."""
        spec = self._render(start)
        secrets = {spec.key_variable: start.key} if spec.key_variable else {}
        process = start_engine(spec, secrets, start.log)
        save(msgspec.structs.replace(handle, pid=process.pid, start_ticks=read_start_ticks(process.pid)))
        return self._running(process)

    def _render(self, start: Start) -> LaunchSpec:
        return render_launch(start.plan, start.port, start.marker, dict(os.environ))

    async def find(self, handle: Handle) -> Running | None:
        """Returns the process of a handle, told from a later one with its pid by its start time."""
        process = find_adopted(handle)
        return self._running(process) if process else None

    async def keep_good(self, running: Running, image: str) -> None:
        """Keeps nothing: a program of the user's is the user's."""

    async def stop(self, running: Running | None, grace_s: float, kill_limit_s: float) -> str:
        """Ends every process of the service: SIGTERM, first for its server alone, after `grace_s` SIGKILL."""
        group = Group(self._prefix, running.pid if running else None, self._sessions)
        left = await stop_group(group, grace_s, kill_limit_s, SERVERS_SHARE)
        if not left:
            return ""
        return f"pid {', '.join(map(str, left))} outlived SIGKILL: the kernel or its driver holds it"

    def _running(self, process: EngineProcess) -> RunningProcess:
        return RunningProcess(process, Group(self._prefix, process.pid, self._sessions))
