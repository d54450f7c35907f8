"""A service that systemd runs: its unit is started, watched and stopped, and everything else stays systemd's."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from stoker.box import is_running
from stoker.errors import NotReadyInTime, Refused, StokerError
from stoker.records import Handle, Plan
from stoker.supervise.held import read_resident, with_held
from stoker.supervise.journal import JournalCopy, say_where
from stoker.supervise.process import EngineProcess, find_adopted, read_boot_id, read_start_ticks
from stoker.supervise.runtimes import Running, Start, StoppedElsewhere
from stoker.supervise.systemctl import DOWN, Manager, UnitState, find_manager

POLL_S = 0.2
START_LIMIT_S = 3600.0  # the unit's own TimeoutStartSec ends it before
STOP_LIMIT_S = 300.0  # likewise TimeoutStopSec
CGROUPS = Path("/sys/fs/cgroup")
EXITED = 1  # CLD_EXITED, see sigaction(2)
COMING = frozenset({"active", "activating", "reloading"})


class RunningUnit:
    """A unit that is up. `ends` is set once Stoker stops it: an end that follows was no one else's."""

    def __init__(self, manager: Manager, unit: str, state: UnitState, journal: JournalCopy | None = None) -> None:
        self._manager = manager
        self._unit = unit
        self._journal = journal
        self._group = state.control_group
        self._pid = state.pid
        self._process: EngineProcess | None = None
        self.ends = False
        with contextlib.suppress(OSError):  # it may be gone already: then the first look at the unit tells
            self._process = EngineProcess(state.pid) if state.pid else None

    @property
    def pid(self) -> int | None:
        """Its main process; None where the unit has none."""
        return self._pid

    async def wait(self) -> str:
        """Waits until it is down, by whomever; raises StoppedElsewhere where that was no fault."""
        if self._process is not None:
            await self._process.wait()
        if self.ends:
            return "ended"
        state = await self._await_down()
        if state.active == "inactive" and state.result == "success" and not self.ends:
            raise StoppedElsewhere(f"{self._unit} was stopped by somebody else, or has ended by itself with success")
        return _say_end(state, self._pid)

    async def _await_down(self) -> UnitState:
        """Returns the unit's state once it is down, or comes up again by somebody else's doing."""
        while True:
            with contextlib.suppress(StokerError, OSError):  # systemd may be starting anew, or no program be started now
                state = await self._manager.read(self._unit)
                same = self._pid is None and state.active in COMING
                waits = state.active == "deactivating" or (state.active in DOWN and state.has_job)
                if not same and not waits:
                    return state
            await asyncio.sleep(POLL_S)

    def is_alive(self) -> bool:
        """Tells whether its main process runs; one without is taken for alive until systemd says otherwise."""
        return self._pid is None or is_running(self._pid)

    def pids(self) -> list[int]:
        """Returns the processes of the unit's control group."""
        return read_pids(self._group)

    def memory_bytes(self) -> int | None:
        """Adds up its processes."""
        return read_resident(self.pids())

    def close(self) -> None:
        """Lets go of it without ending it."""
        if self._process is not None:
            self._process.close()
        if self._journal is not None:
            self._journal.close()


def _say_end(state: UnitState, pid: int | None) -> str:
    if state.active in COMING and state.sub != "auto-restart":
        return f"somebody restarted it: it was pid {pid}, and is pid {state.pid or 'none yet'}"
    number, is_signal = state.exit_status, state.exit_kind > EXITED
    how = (
        f"killed by {signal.Signals(number).name}" if is_signal and number in set(signal.Signals) else f"exit code {number}"
    )
    more = "" if state.result in ("exit-code", "signal", "core-dump", "success") else f", {state.result}"
    return f"{how}{more}{'; systemd was about to restart it' if state.sub == 'auto-restart' else ''}"


def read_pids(control_group: str) -> list[int]:
    """Returns the processes of a control group and of those below it."""
    found: list[int] = []
    if not control_group.strip("/"):
        return found
    for file in (CGROUPS / control_group.strip("/")).rglob("cgroup.procs"):
        with contextlib.suppress(OSError):
            found += map(int, file.read_text().split())
    return found


def runs_unasked(unit: str) -> bool:
    """Tells whether a unit has processes, by its control group's usual places: cheap enough for every look at the status."""
    own = f"user.slice/user-{os.getuid()}.slice/user@{os.getuid()}.service/app.slice"
    return any(read_pids(f"{slice_}/{unit}") for slice_ in ("system.slice", own))


class UnitRuntime:
    """Starts and stops the unit of one service, and leaves alone what others started."""

    def __init__(self, plan: Plan, log: Path) -> None:
        self._log = log
        self._service = plan.service
        self._unit = plan.unit or ""
        self._began = False

    async def start(self, start: Start, handle: Handle, save: Callable[[Handle], None]) -> Running:
        """Starts the unit; one that somebody else has started is taken as it is."""
        manager = await find_manager(self._unit)
        before = await manager.read(self._unit)
        if before.load != "loaded":
            raise Refused(f"{self._unit} cannot be started", why=f"systemd calls it {before.load}")
        since_s = time.time()
        say_where(self._unit, manager.is_own, start.log)
        self._began = True
        if before.active != "active":
            await self._begin(manager)
        state = await manager.read(self._unit)
        if state.active in DOWN:
            raise StokerError(
                f"{self._unit} ended at once", why=_say_end(state, None), next_step=f"journalctl -u {self._unit}"
            )
        found = msgspec.structs.replace(
            handle, pid=state.pid, start_ticks=read_start_ticks(state.pid) if state.pid else None
        )
        save(found)
        if before.active == "active":
            save(await asyncio.to_thread(with_held, found, read_pids(state.control_group)))
        return RunningUnit(manager, self._unit, state, JournalCopy(self._unit, manager.is_own, start.log, since_s))

    async def _begin(self, manager: Manager) -> None:
        try:
            await manager.act("start", self._unit, self._service, START_LIMIT_S)
        except Refused:  # sudo's word, not systemd's: nothing was begun
            self._began = False
            raise

    async def find(self, handle: Handle) -> Running | None:
        """Returns the unit if its main process is still that one; a unit without one has to be up in the same boot."""
        process = find_adopted(handle)
        if process is not None:
            process.close()
        elif handle.pid is not None or handle.boot_id != read_boot_id():
            return None
        try:
            manager = await find_manager(self._unit)
            state = await manager.read(self._unit)
        except StokerError:
            return None
        if state.active not in COMING or (handle.pid is not None and state.pid != handle.pid):
            return None
        return RunningUnit(manager, self._unit, state, JournalCopy(self._unit, manager.is_own, self._log, time.time()))

    async def keep_good(self, running: Running, image: str) -> None:
        """Does nothing: there is no image that could be taken away."""

    async def stop(self, running: Running | None, grace_s: float, kill_limit_s: float) -> str:
        """Stops the unit, where Stoker started it; how long it may take is said by the unit's TimeoutStopSec."""
        if running is None and not self._began:
            return ""
        if isinstance(running, RunningUnit):
            running.ends = True
        manager = await find_manager(self._unit)
        before = await manager.read(self._unit)
        group = before.control_group
        if before.active in DOWN and not before.has_job:
            self._began = False
            return ""
        if grace_s <= 0:
            await manager.kill(self._unit)
        return await self._stop(manager, group, STOP_LIMIT_S + grace_s + kill_limit_s)

    async def _stop(self, manager: Manager, group: str, limit_s: float) -> str:
        try:
            await manager.act("stop", self._unit, self._service, limit_s)
        except NotReadyInTime as problem:
            return f"{self._unit} is not down: {problem.what}"
        state = await manager.read(self._unit)
        if state.active not in DOWN:
            return f"{self._unit} is {state.active} after its stop"
        self._began = False
        left = read_pids(group)
        return f"pid {', '.join(map(str, left))} outlived the stop of {self._unit}: its KillMode= spares it" if left else ""
