"""Every frozen record that crosses a room, in the order in which data flows.

wish + model facts + machine facts -> plan -> launch spec -> handle -> service record -> proof
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

import msgspec

GIB = 1024**3
MIB = 1024**2

SpeculationKind = Literal["off", "draft", "ngram"]
ReasoningKind = Literal["auto", "on", "off"]
SettingValue = str | int | float | bool


def say_bytes(count: int) -> str:
    """Returns an amount of memory as people read it: '249 MiB', '70.2 GiB'."""
    return f"{count / GIB:.1f} GiB" if count >= GIB else f"{count / MIB:.0f} MiB"


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A value that never changes once it is made."""


class Wish(Record, frozen=True):
    """What a person asked for: which model to serve, and the few things they chose themselves."""

    name: str
    model: Annotated[str, msgspec.Meta(min_length=1)]
    engine: str = "llamacpp"
    served_name: str | None = None
    port: int | None = None
    context: int | None = None
    parallel: int | None = None
    speculation: SpeculationKind = "off"
    draft: str | None = None
    draft_tokens: int | None = None
    reasoning: ReasoningKind = "auto"
    gpu_layers: int | None = None
    threads: int | None = None
    server: str | None = None


class Memory(Record, frozen=True):
    """What the kernel says of the machine's memory; None where it does not say.

    Source: /proc/meminfo and /proc/pressure/memory. `full_stall_pct` is the 10-second average of PSI's `full` line.
    """

    total_bytes: int
    available_bytes: int
    free_bytes: int
    page_cache_bytes: int
    swap_total_bytes: int
    swap_free_bytes: int
    full_stall_pct: float | None = None


class Gpu(Record, frozen=True):
    """One NVIDIA GPU as its driver describes it; None where the driver answers 'not supported', as GB10 does."""

    name: str
    compute_capability: str | None
    memory_total_bytes: int | None
    memory_used_bytes: int | None
    power_w: float | None
    power_limit_w: float | None
    sm_clock_mhz: int | None


class Disk(Record, frozen=True):
    """Free space where Stoker keeps its state."""

    path: str
    total_bytes: int
    free_bytes: int


class Machine(Record, frozen=True):
    """What Stoker knows of this machine."""

    hostname: str
    arch: str
    kernel: str
    cpu_model: str | None
    cpu_count: int
    memory: Memory
    gpus: tuple[Gpu, ...]
    driver: str | None
    cuda: str | None
    disk: Disk | None
    engines: dict[str, str | None]


class MemoryHolder(Record, frozen=True):
    """A process and the resident memory it holds."""

    pid: int
    name: str
    resident_bytes: int


class Model(Record, frozen=True):
    """What a GGUF's header says of a model; None where the header does not say.

    `kv_bytes_per_token` is for a 16-bit cache, keys and values of all layers together. `digest` tells this file's content
    from another's (see `facts.model.read_digest`).
    """

    path: str
    name: str
    architecture: str
    file_bytes: int
    parameters: int | None
    quantisation: str | None
    context_tokens: int | None
    kv_bytes_per_token: int | None
    vocabulary_hash: str | None
    has_chat_template: bool
    licence: str | None
    digest: str = ""


class Setting(Record, frozen=True):
    """One engine setting and who chose it."""

    name: str
    value: SettingValue
    because: str


class Plan(Record, frozen=True):
    """How one service will run: every setting with its reason, and the memory it should need.

    `plan_id` is a digest of everything that decides the launch. `port` 0 means a free one, picked at launch.
    """

    plan_id: str
    service: str
    model: str
    model_path: str
    revision: str
    engine: str
    server: str | None
    port: int
    settings: tuple[Setting, ...]
    memory_need_bytes: int
    memory_because: str
    engine_version: str | None = None


class LaunchSpec(Record, frozen=True):
    """The exact program to run: words and environment, never a shell line."""

    argv: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    health_path: str
    key_variable: str | None


class State(StrEnum):
    """Where a service is in its life; only READY means that clients are answered."""

    STOPPED = "STOPPED"
    WAITING_FOR_MEMORY = "WAITING_FOR_MEMORY"
    STARTING = "STARTING"
    LOADING = "LOADING"
    PROVING = "PROVING"
    READY = "READY"
    DRAINING = "DRAINING"
    STOPPING = "STOPPING"
    SETTLING = "SETTLING"
    FAILED = "FAILED"
    BACKOFF = "BACKOFF"
    WEDGED = "WEDGED"


RESTING = frozenset({State.STOPPED, State.FAILED, State.WEDGED})
AT_REST = RESTING | {State.READY}
BEING_STARTED = frozenset({State.WAITING_FOR_MEMORY, State.STARTING, State.LOADING, State.PROVING})
WITHOUT_ENGINE = frozenset({State.STOPPED, State.FAILED, State.BACKOFF, State.WAITING_FOR_MEMORY})


class Handle(Record, frozen=True):
    """What it takes to find an engine process again after the daemon was restarted.

    `marker` is in the environment of the engine and of all its children; `start_ticks` (clock ticks since boot) and
    `boot_id` tell a process from a later one that got the same pid. `memory_before_bytes` was available before the
    start, `memory_claim_bytes` less once the engine was ready.
    """

    launch: int
    marker: str
    pid: int | None
    start_ticks: int | None
    boot_id: str
    port: int
    memory_before_bytes: int
    memory_claim_bytes: int = 0


class Service(Record, frozen=True):
    """The whole state of a service: what `supervise.machine.step` takes and returns."""

    state: State
    since: float
    why: str
    wanted: bool = False
    launch: int = 0
    was_ready: bool = False
    then: State = State.STOPPED
    then_why: str = ""
    then_code: int = 0
    code: int = 0
    restarts: tuple[float, ...] = ()


class SavedService(Record, frozen=True):
    """A service as the store keeps it."""

    plan: Plan
    service: Service
    handle: Handle | None = None


class Proof(Record, frozen=True):
    """That a model answered: what it was asked, what came back, and how long the first token took."""

    model: str
    text: str
    tokens: int
    ttft_s: float


class Endpoint(Record, frozen=True):
    """Where an engine answers, and for whom."""

    service: str
    model: str
    revision: str
    plan_id: str
    host: str
    port: int


class ServiceView(Record, frozen=True):
    """A service as people and programs see it. Times are seconds since the epoch; None is unknown."""

    name: str
    model: str
    engine: str
    state: State
    since: float
    why: str
    address: str | None
    pid: int | None
    memory_bytes: int | None
    memory_need_bytes: int
    restarts: int
    plan_id: str
    exit_code: int
    engine_version: str | None = None
    awaits: str | None = None
    warnings: tuple[str, ...] = ()


class GatewayView(Record, frozen=True):
    """Where the gateway listens, and the file that holds its key."""

    url: str
    key_file: str


class DaemonView(Record, frozen=True):
    """The daemon itself."""

    running: bool
    pid: int | None
    since: float | None
    version: str | None
    memory_bytes: int | None


class StatusView(Record, frozen=True):
    """Everything `stoker status --json` prints."""

    gateway: GatewayView
    daemon: DaemonView
    services: tuple[ServiceView, ...]
