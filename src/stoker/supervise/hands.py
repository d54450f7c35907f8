"""What a service's owner holds of its engine: the plan, the handle, what runs, its log, and how the memory is watched."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

from stoker.config import LimitsConfig, Paths
from stoker.engines import find
from stoker.errors import StokerError
from stoker.facts.machine.memory import read_holders
from stoker.records import (
    BEING_STARTED,
    WITHOUT_ENGINE,
    CardMemory,
    Endpoint,
    Handle,
    KeptVerification,
    Measured,
    Memory,
    Plan,
    Proof,
    Service,
    Start,
    State,
    Timeline,
)
from stoker.supervise.card import ReadCard
from stoker.supervise.guard import say_holders
from stoker.supervise.load_help import LoadHelp
from stoker.supervise.logs import EngineLog
from stoker.supervise.machine import MemoryLow
from stoker.supervise.runtimes import Keyed, Running, Runtime
from stoker.supervise.runtimes.choose import choose_runtime, holds_already
from stoker.supervise.runtimes.ranked import Crew
from stoker.supervise.starts.timeline import TimelineWatch
from stoker.supervise.watchdog import Launch, Watchdog

HOST = "127.0.0.1"
LOG_PAUSE_S = 0.5
# Weights that are mapped count as available all the while: what was taken beside them says too little of the need.
MEASURED_SHARE = 0.5
T = TypeVar("T")


class Gate(Protocol):
    """Asks an engine what its plan requires; it lies in higher rooms."""

    async def play(self, plan: Plan, endpoint: Endpoint, say: Callable[[str], None]) -> KeptVerification:
        """Returns what was found; `say` is told each step, such as `tools, 3 of 5`."""

    def keep(self, kept: KeptVerification) -> None:
        """Keeps what was found."""


async def says_nothing(service: str) -> str:
    """Knows nothing of any failure."""
    return ""


def no_card() -> None:
    """Knows of no card that has memory of its own."""


@dataclass(frozen=True)
class Tools:
    """What every service's hands share; what lies in higher rooms is handed in.

    `turn` is held by the one service that is being started: two that load at once would both count the same memory as free.
    `cuda_counts_cache` tells whether CUDA takes the page cache for used, as where processor and GPU share one memory.
    `read_card` reads the memory of a card that has its own, None where there is none; it may be slow.
    `tell_failure` says in a sentence what the log of a service tells of its failure, empty where it tells nothing.
    `crew` speaks to the boxes that run other ranks of a model; None where there are none.
    """

    paths: Paths
    limits: LimitsConfig
    instance: str
    engine_key: str
    read_memory: Callable[[], Memory]
    is_healthy: Callable[[Endpoint, str], Awaitable[bool]]
    prove: Callable[[Endpoint], Awaitable[Proof]]
    gate: Gate
    in_flight: Callable[[str], int]
    heard_at: Callable[[str], float]
    read_counters: Callable[[Endpoint], Awaitable[tuple[str, ...] | None]]
    keep_start: Callable[[Start], None]
    cuda_counts_cache: Callable[[], bool]
    has_gpu: Callable[[], bool]
    tell_failure: Callable[[str], Awaitable[str]] = says_nothing
    read_card: ReadCard = no_card
    crew: Crew | None = None
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class Holding(NamedTuple):
    """What would come back if an engine stopped (the most of what was planned, measured and is resident), and what it has
    yet to take of the memory that is available now.
    """

    held_bytes: int
    coming_bytes: int


class Hands:
    """The effects of one service. `save` is called whenever the handle changes, before anything depends on it."""

    def __init__(self, plan: Plan, tools: Tools, save: Callable[[], None], handle: Handle | None = None) -> None:
        self.plan = plan
        self.tools = tools
        self.handle = handle
        self.running: Running | None = None
        self.log = EngineLog(tools.paths.engine_log(plan.service), tools.limits.log_bytes)
        self.waits_for_turn = False
        self.gate_step = ""
        self.on_gate_step: Callable[[], None] | None = None
        self._save = save
        self.has_turn = False
        self.last_available_bytes: int | None = None
        self.card: CardMemory | None = None  # as it was last seen, by whoever waits for it
        self.last_card_free_bytes: int | None = None
        self.low_bytes: int | None = None  # unknown of a launch that was not watched from its first moment
        self.memory_is_lost = False
        self.measured: Measured | None = None
        self.timeline: TimelineWatch | None = None
        self.load: LoadHelp | None = None
        self._watchdog = Watchdog(tools.limits.memory_floor_bytes)
        self._log_read_s = 0.0
        self.hurry = False
        self.is_near = False
        self._endpoint: tuple[tuple[Plan, Handle, Running | None], Endpoint] | None = None
        self._of_unit: tuple[Plan, Runtime] | None = None
        self._seen: tuple[Running, int | None] | None = None
        self.transport: str | None = None  # what NCCL said that this launch's ranks go over

    @property
    def endpoint(self) -> Endpoint | None:
        """Where the engine of the present launch answers."""
        if self.handle is None:
            return None
        made_of = plan, handle, running = self.plan, self.handle, self.running
        if self._endpoint is None or self._endpoint[0] != made_of:  # every request asks
            key = running.key if isinstance(running, Keyed) else None
            reuses = not plan.is_engine or find(plan.engine).reuses_connections
            made = Endpoint(plan.service, plan.model, plan.revision, plan.plan_id, HOST, handle.port, key, reuses)
            self._endpoint = made_of, made
        return self._endpoint[1]

    @property
    def need_bytes(self) -> int:
        """What a start has to find available: what the last one took, where that was by the same plan, else as planned."""
        return self.need_for(self.plan)

    def need_for(self, plan: Plan) -> int:
        """What a start by a plan has to find available of the machine's memory."""
        planned_bytes, last = plan.host_need_bytes, self.measured
        if last is None or last.plan_id != plan.plan_id or last.claim_bytes < planned_bytes * MEASURED_SHARE:
            return planned_bytes
        return last.claim_bytes

    def holding(self, service: Service, is_busy: bool, *, by_last_look: bool) -> Holding:
        """Returns what it holds and has yet to take; by the last look, or one that walks through /proc now."""
        if service.state in WITHOUT_ENGINE:
            return Holding(0, self.need_bytes if is_busy else 0)
        resident_bytes = (self.seen_bytes if by_last_look else self._read_resident_bytes()) or 0
        comes = service.state in BEING_STARTED and not service.serves
        coming_bytes = max(0, self.need_bytes - resident_bytes) if comes else 0
        held_bytes = max(self.need_bytes, resident_bytes, self.handle.memory_claim_bytes if self.handle else 0)
        return Holding(held_bytes - min(held_bytes, coming_bytes), coming_bytes)

    def holding_on_card(self, service: Service, is_busy: bool, free_bytes: int) -> Holding:
        """Returns what it holds and has yet to take of the card's memory, of which so much is free now."""
        need_bytes, handle = self.plan.card_need_bytes, self.handle
        if service.state in WITHOUT_ENGINE:
            return Holding(0, need_bytes if is_busy else 0)
        before_bytes = handle.card_before_bytes if handle else None
        held_bytes = (handle.card_claim_bytes if handle else 0) or need_bytes
        comes = service.state in BEING_STARTED and not service.serves
        taken_bytes = max(0, before_bytes - free_bytes) if before_bytes is not None else 0
        coming_bytes = max(0, need_bytes - taken_bytes) if comes else 0
        return Holding(held_bytes - min(held_bytes, coming_bytes), coming_bytes)

    def note_card(self, card: CardMemory | None) -> None:
        """Notes what a look at the card has found."""
        self.card = card

    def note_card_beside(self, card: CardMemory | None, service: Service) -> None:
        """Notes what is free on the card while its engine holds its share; an end gives that back little by little."""
        if card is not None and self.running is not None and service.state is not State.STOPPING:
            self.last_card_free_bytes = card.free_bytes

    async def read_card(self) -> CardMemory | None:
        """Reads the card's own memory; None where the plan asks nothing of it, or what runs already has it."""
        if not self.plan.card_need_bytes or holds_already(self.plan):
            return None
        return await asyncio.to_thread(self.tools.read_card)

    def look_at_memory(self) -> None:
        """Reads what the engine holds, for views; may be called in a thread, since a walk through /proc takes its time."""
        running = self.running
        self._seen = (running, running.memory_bytes()) if running else None

    @property
    def was_looked_at(self) -> bool:
        """Tells whether the engine that runs now was looked at."""
        return self.running is None or (self._seen is not None and self._seen[0] is self.running)

    @property
    def seen_bytes(self) -> int | None:
        """What the engine that runs now held when it was last looked at."""
        return self._seen[1] if self._seen is not None and self._seen[0] is self.running else None

    def _read_resident_bytes(self) -> int | None:
        return self.running.memory_bytes() if self.running else None

    @property
    def runtime(self) -> Runtime:
        """What starts and ends the engines of this plan; a unit's remembers whether it started it, so it is kept."""
        if self._of_unit is not None and self._of_unit[0] is self.plan:
            return self._of_unit[1]
        tools = self.tools
        runtime = choose_runtime(self.plan, self.handle, tools.instance, self.log.file, tools.has_gpu, tools.crew)
        self._of_unit = (self.plan, runtime) if self.plan.unit else None
        return runtime

    def keep(self, handle: Handle) -> None:
        """Takes a handle for this launch's and saves it."""
        self.handle = handle
        self._save()

    def say_gate_step(self, step: str) -> None:
        """Notes what its gate asks for now, empty where it asks nothing any more; whoever waits for news hears of it.

        What is asked of an engine that has ended is not noted, so that its end is told with what it was asked last.
        """
        if step and self.running is not None and not self.running.is_alive():
            return
        self.gate_step = step
        if step and self.on_gate_step is not None:
            self.on_gate_step()

    def watch_launch(self, before_bytes: int) -> None:
        """Watches the memory of a launch from its first moment; nothing of the last one's counts."""
        self.low_bytes = before_bytes
        self._watchdog = Watchdog(self.tools.limits.memory_floor_bytes)

    def begin_timeline(self) -> None:
        """Hears what the engine prints from now on, to tell where its start's time goes.

        One that runs already had its start.
        """
        self.log.begin()
        self.timeline = None
        self.log.on_lines = None
        if self.plan.is_engine and not holds_already(self.plan):
            watch = TimelineWatch(find(self.plan.engine), time.time())
            self.log.on_lines = lambda lines: watch.add(lines, time.time())
            self.timeline = watch

    def end_timeline(self, ready_at: float | None, proved_at: float | None = None) -> Timeline | None:
        """Keeps and returns the start as it was heard; `ready_at` is None where it did not lead to READY.

        `proved_at` is when it had given its first answer, which the gate followed.
        """
        if self.timeline is None:
            return None
        self.log.poll()
        watch, self.timeline, self.log.on_lines = self.timeline, None, None
        timeline = watch.finish(ready_at, proved_at)
        self.tools.keep_start(Start(self.plan.service, self.plan.plan_id, timeline))
        return timeline

    def release_turn(self) -> None:
        """Lets the next service be started."""
        self.waits_for_turn = False
        if self.has_turn:
            self.has_turn = False
            self.tools.turn.release()

    def look(self, service: Service, may_go: bool) -> MemoryLow | None:
        """Looks at the log and the memory while the engine runs; returns the event if it has to be stopped for memory.

        `may_go` tells whether this service is the one to be stopped where the memory is short while it serves.
        """
        now_s = time.monotonic()
        if now_s - self._log_read_s >= LOG_PAUSE_S:
            self.log.poll()
            self._log_read_s = now_s
        try:
            memory = self.tools.read_memory()
        except StokerError:  # no file can be opened for the moment: the last sample stands
            return None
        if service.state is not State.STOPPING:  # its end gives memory back, little by little
            self.last_available_bytes = memory.available_bytes
        if self.low_bytes is not None:
            self.low_bytes = min(self.low_bytes, memory.available_bytes)
        why = self._judge(now_s, memory, service, may_go)
        if why is None:
            return None
        self.hurry = True
        held = say_holders(read_holders())
        return MemoryLow(time.time(), f"stopped before the machine ran out of memory: {why}; most is held by: {held}")

    def _judge(self, now_s: float, memory: Memory, service: Service, may_go: bool) -> str | None:
        self.is_near = self._watchdog.is_near(memory)
        if self.handle is None:
            return None
        # A start may take a little more than the last one did; what was planned is its claim all the same.
        launch = Launch(self.handle.memory_before_bytes, max(self.need_bytes, self.plan.host_need_bytes))
        if service.state in BEING_STARTED and not service.serves:
            return self._watchdog.judge_launch(now_s, memory, launch)
        why = self._watchdog.judge_serving(now_s, memory, launch)
        return why if (service.serves or service.state is State.DRAINING) and may_go else None


def known(found: T | None) -> T:
    """Returns what a launch must have by now; raises StokerError where it has not."""
    if found is None:
        raise StokerError("the engine has no address", why="it was not launched by this daemon")
    return found
