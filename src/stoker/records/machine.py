"""What Stoker knows of the machine."""

from __future__ import annotations

from stoker.records.base import Record


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
