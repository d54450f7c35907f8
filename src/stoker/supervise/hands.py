"""What a service's owner does to the world: one coroutine a job, each ending in the event that it brought about."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from stoker.box import is_running
from stoker.config import LimitsConfig, Paths
from stoker.engines import find
from stoker.errors import NotReadyInTime, Refused, StokerError
from stoker.facts.machine.memory import read_holders
from stoker.facts.machine.ports import is_port_free, pick_free_port, read_listener
from stoker.facts.model.read import read_digest
from stoker.launch.process import render_launch
from stoker.records import Endpoint, Handle, Memory, Plan, Proof, Service, say_bytes
from stoker.supervise import machine
from stoker.supervise.guard import (
    await_room,
    await_settled,
    can_ever_fit,
    describe_shortage,
    settling_target_bytes,
)
from stoker.supervise.logs import EngineLog
from stoker.supervise.machine import Event, Job
from stoker.supervise.process import (
    EngineProcess,
    Group,
    read_boot_id,
    read_start_ticks,
    start_engine,
    stop_group,
)

HOST = "127.0.0.1"
logger = logging.getLogger("stoker.supervise")
HEALTH_FIRST_POLL_S = 0.03
HEALTH_LAST_POLL_S = 1.0
DRAIN_POLL_S = 0.02
KILL_LIMIT_S = 10.0
EXIT_POLL_S, EXIT_POLLS = 0.02, 15
TELLING_LINES = 40
TIMED_OUT = NotReadyInTime.exit_code
REFUSED = Refused.exit_code


@dataclass(frozen=True)
class Tools:
    """What every service's hands share; what lies in higher rooms is handed in.

    `turn` is held by the one service that is being started: two that load at once would both count the same memory as free.
    """

    paths: Paths
    limits: LimitsConfig
    instance: str
    engine_key: str
    read_memory: Callable[[], Memory]
    is_healthy: Callable[[Endpoint, str], Awaitable[bool]]
    prove: Callable[[Endpoint], Awaitable[Proof]]
    in_flight: Callable[[str], int]
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class Hands:
    """The effects of one service. `save` is called whenever the handle changes, before anything depends on it."""

    def __init__(self, plan: Plan, tools: Tools, save: Callable[[], None], handle: Handle | None = None) -> None:
        self.plan = plan
        self.tools = tools
        self.handle = handle
        self.process: EngineProcess | None = None
        self.log = EngineLog(tools.paths.engine_log(plan.service), tools.limits.log_bytes)
        self.waits_for_turn = False
        self._save = save
        self._has_turn = False
        self._last_available_bytes: int | None = None

    @property
    def endpoint(self) -> Endpoint | None:
        """Where the engine of the present launch answers."""
        if self.handle is None:
            return None
        plan = self.plan
        return Endpoint(plan.service, plan.model, plan.revision, plan.plan_id, HOST, self.handle.port)

    @property
    def group(self) -> Group:
        """All processes of this service, of whichever launch."""
        return Group(f"{self.tools.instance}/{self.plan.service}/", self.process.pid if self.process else None)

    async def do(self, job: Job, service: Service) -> Event:
        """Runs a job to its end; a fault of whatever kind ends in the event that this job fails with."""
        work, fault = WORK[job]
        try:
            return await work(self, service)
        except (StokerError, OSError) as problem:
            code = problem.exit_code if isinstance(problem, StokerError) else StokerError.exit_code
            return fault(time.time(), str(problem).replace("\n  ", "; "), code)
        except Exception as problem:  # one engine's oddity must not end the daemon, and with it all other services
            logger.exception("service=%s job=%s", self.plan.service, job.name)
            return fault(time.time(), f"Stoker itself failed ({type(problem).__name__}: {problem}); see daemon.log")

    def sample(self) -> None:
        """Looks at the log and the memory while the engine runs."""
        self.log.poll()
        with contextlib.suppress(StokerError):  # no file can be opened for the moment: the last sample stands
            self._last_available_bytes = self.tools.read_memory().available_bytes

    def release_turn(self) -> None:
        """Lets the next service be started."""
        self.waits_for_turn = False
        if self._has_turn:
            self._has_turn = False
            self.tools.turn.release()

    async def await_memory(self, service: Service) -> Event:
        """Waits until no other service is being started, then for room."""
        self.waits_for_turn = self.tools.turn.locked()
        await self.tools.turn.acquire()
        self._has_turn, self.waits_for_turn = True, False
        need_bytes, limits = self.plan.memory_need_bytes, self.tools.limits
        if await await_room(need_bytes, limits.memory_floor_bytes, limits.memory_wait_s, self.tools.read_memory):
            return machine.MemoryFree(time.time(), f"{say_bytes(need_bytes)} are free for it")
        memory = self.tools.read_memory()
        shortage = describe_shortage(need_bytes, limits.memory_floor_bytes, memory, read_holders())
        if can_ever_fit(need_bytes, limits.memory_floor_bytes, memory):
            why = f"no room within {limits.memory_wait_s:g} s (memory_wait_s): {shortage}"
            return machine.MemoryRefused(time.time(), why, TIMED_OUT)
        return machine.MemoryRefused(time.time(), f"it does not fit in this machine: {shortage}", REFUSED)

    async def spawn(self, service: Service) -> Event:
        """Starts the engine; its handle is saved before, so that no daemon can lose sight of it."""
        port = self._choose_port()
        self._check_unchanged()
        marker = f"{self.tools.instance}/{self.plan.service}/{service.launch}"
        spec = render_launch(self.plan, port, marker, dict(os.environ))
        before_bytes = self.tools.read_memory().available_bytes
        self.handle = Handle(service.launch, marker, None, None, read_boot_id(), port, before_bytes)
        self._save()
        self.log.begin()
        secrets = {spec.key_variable: self.tools.engine_key} if spec.key_variable else {}
        self.process = start_engine(spec, secrets, self.log.file)
        pid = self.process.pid
        self.handle = msgspec.structs.replace(self.handle, pid=pid, start_ticks=read_start_ticks(pid))
        self._save()
        return machine.Spawned(time.time(), f"the engine runs as pid {pid}")

    def _choose_port(self) -> int:
        port = self.plan.port
        if port == 0:
            return pick_free_port(HOST)
        if not is_port_free(HOST, port):
            who = read_listener(port) or "another program, which does not let itself be seen"
            raise Refused(f"port {port} is taken by {who}", next_step=f"end it, or give {self.plan.service} another port")
        return port

    def _check_unchanged(self) -> None:
        if read_digest(Path(self.plan.model_path)) != self.plan.revision:
            raise Refused(
                f"{self.plan.model_path} is not the file that was planned for",
                why="its content changed, and answers would go out under the old revision",
                next_step=f"`stoker up {self.plan.service}` plans anew",
            )

    async def await_exit(self, process: EngineProcess, launch: int) -> Event:
        """Waits until the engine's process ends, and tells why it did."""
        how = await process.wait()
        process.close()
        meaning = find(self.plan.engine).explain(self.log.tail(TELLING_LINES))
        return machine.Exited(time.time(), f"the engine ended ({how})" + (f": {meaning}" if meaning else ""), launch=launch)

    async def await_health(self, service: Service) -> Event:
        """Asks the engine for its health until it says yes."""
        endpoint = _known(self.endpoint)
        health_path = find(self.plan.engine).render(self.plan, endpoint.port).health_path
        pause_s, limit_s = HEALTH_FIRST_POLL_S, self.tools.limits.load_s
        end = time.monotonic() + limit_s
        while not await self.tools.is_healthy(endpoint, health_path):
            if time.monotonic() > end:
                return machine.Unfit(time.time(), f"it did not load within {limit_s:g} s (load_s)", TIMED_OUT)
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 1.2, HEALTH_LAST_POLL_S)
        return machine.Healthy(time.time(), "the engine says it is ready, which proves nothing")

    async def prove(self, service: Service) -> Event:
        """Asks for real tokens of the model by name."""
        limit_s = self.tools.limits.prove_s
        try:
            async with asyncio.timeout(limit_s):
                proof = await self.tools.prove(_known(self.endpoint))
        except StokerError:
            if await self._ends_soon():
                await asyncio.Event().wait()  # its exit tells more: that event ends this job
            raise
        except TimeoutError:
            return machine.Unfit(time.time(), f"it gave no token within {limit_s:g} s (prove_s)", TIMED_OUT)
        self._measure_claim()
        return machine.Proved(time.time(), f"{proof.model} answered; first token after {proof.ttft_s * 1000:.0f} ms")

    async def _ends_soon(self) -> bool:
        """Tells whether the engine's process ends within a moment, as one does whose connections broke."""
        for _ in range(EXIT_POLLS):
            if self.process is None or not is_running(self.process.pid):
                return True
            await asyncio.sleep(EXIT_POLL_S)
        return False

    def _measure_claim(self) -> None:
        if self.handle is not None and self.handle.memory_claim_bytes == 0:
            taken_bytes = self.handle.memory_before_bytes - self.tools.read_memory().available_bytes
            self.handle = msgspec.structs.replace(self.handle, memory_claim_bytes=max(0, taken_bytes))

    async def drain(self, service: Service) -> Event:
        """Waits until nobody is being answered any more."""
        end = time.monotonic() + self.tools.limits.drain_s
        while left := self.tools.in_flight(self.plan.service):
            if time.monotonic() > end:
                return machine.Drained(time.time(), f"{left} requests did not end within drain_s and were cut")
            await asyncio.sleep(DRAIN_POLL_S)
        return machine.Drained(time.time(), "no request was left")

    async def stop_group(self, service: Service) -> Event:
        """Ends every process of the launch."""
        left = await stop_group(self.group, self.tools.limits.stop_grace_s, KILL_LIMIT_S)
        if left:
            pids = ", ".join(map(str, left))
            return machine.GroupStuck(time.time(), f"pid {pids} outlived SIGKILL: the kernel or its driver holds it")
        self.process = None
        return machine.GroupGone(time.time(), "none of its processes is left")

    async def settle(self, service: Service) -> Event:
        """Waits until the memory is back."""
        handle, limit_s = self.handle, self.tools.limits.settle_s
        if handle is None:
            return machine.Settled(time.time(), "it held no memory")
        last_bytes = self._last_available_bytes
        target_bytes = settling_target_bytes(
            handle.memory_before_bytes, handle.memory_claim_bytes,
            handle.memory_before_bytes if last_bytes is None else last_bytes,
        )  # fmt: skip
        missing_bytes = await await_settled(target_bytes, limit_s, self.tools.read_memory)
        if missing_bytes:
            why = f"{say_bytes(missing_bytes)} of its memory were not back after {limit_s:g} s (settle_s)"
            return machine.NotSettled(time.time(), why)
        self.handle = None
        self._last_available_bytes = None
        return machine.Settled(time.time(), "its memory is back")

    async def back_off(self, service: Service) -> Event:
        """Pauses before the next restart."""
        await asyncio.sleep(machine.backoff_s(service))
        count = len(service.restarts)
        return machine.BackoffOver(time.time(), f"restart {count} of {self.tools.limits.restarts}")


def _known(endpoint: Endpoint | None) -> Endpoint:
    if endpoint is None:
        raise StokerError("the engine has no address", why="it was not launched by this daemon")
    return endpoint


Work = Callable[[Hands, Service], Awaitable[Event]]

# What each job does, and the event it ends with where it fails.
WORK: dict[Job, tuple[Work, type[Event]]] = {
    Job.AWAIT_MEMORY: (Hands.await_memory, machine.MemoryRefused),
    Job.SPAWN: (Hands.spawn, machine.SpawnFailed),
    Job.AWAIT_HEALTH: (Hands.await_health, machine.Unfit),
    Job.PROVE: (Hands.prove, machine.Unfit),
    Job.DRAIN: (Hands.drain, machine.Drained),
    Job.STOP_GROUP: (Hands.stop_group, machine.GroupStuck),
    Job.SETTLE: (Hands.settle, machine.NotSettled),
    Job.BACK_OFF: (Hands.back_off, machine.BackoffOver),
}
