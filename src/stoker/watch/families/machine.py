"""Memory, GPUs and disks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from stoker.records import Gpu, Memory

# What slows a GPU down against its owner's will; an idle clock and one that somebody set are neither.
SLOWED_BY = ("the power limit", "a hardware slowdown", "heat (software)", "heat (hardware)", "the power supply's brake")
MHZ = 1e6
MEMORY = {
    "stoker_machine_memory_total_bytes": "The machine's memory.",
    "stoker_machine_memory_available_bytes": "MemAvailable, the truth for a start.",
    "stoker_machine_memory_free_bytes": "MemFree, which CUDA sees on a GB10.",
    "stoker_machine_memory_page_cache_bytes": "Cached files.",
    "stoker_machine_memory_floor_bytes": "What has to stay available (limits.memory_floor_bytes).",
    "stoker_machine_memory_stalled_ratio": "Share of 10 s in which nothing ran for want of memory (PSI, full).",
    "stoker_machine_swap_used_bytes": "Swapped out.",
}


class DiskSeen(NamedTuple):
    """A file system by what lies on it (`state`, `models`)."""

    holds: str
    total_bytes: int
    free_bytes: int


class MachineSeen(NamedTuple):
    """The machine at a moment; what is not known is None or empty."""

    memory: Memory | None = None
    floor_bytes: int = 0
    gpus: tuple[Gpu, ...] = ()
    disks: tuple[DiskSeen, ...] = ()


def machine_families(machine: MachineSeen) -> Iterator[Metric]:
    """Yields memory, GPUs and disks."""
    amounts = {} if machine.memory is None else _amounts(machine.memory)
    amounts["stoker_machine_memory_floor_bytes"] = machine.floor_bytes
    for name, what in MEMORY.items():
        family = GaugeMetricFamily(name, what)
        if (amount := amounts.get(name)) is not None:
            family.add_metric([], amount)
        yield family
    yield from _gpu_families(machine.gpus)
    sizes = GaugeMetricFamily("stoker_disk_total_bytes", "Size of a disk, by what lies on it.", labels=["holds"])
    room = GaugeMetricFamily("stoker_disk_free_bytes", "Room left on a disk, by what lies on it.", labels=["holds"])
    for disk in machine.disks:
        sizes.add_metric([disk.holds], disk.total_bytes)
        room.add_metric([disk.holds], disk.free_bytes)
    yield sizes
    yield room


def _amounts(memory: Memory) -> dict[str, float | None]:
    stalled_pct = memory.full_stall_pct
    return {
        "stoker_machine_memory_total_bytes": memory.total_bytes,
        "stoker_machine_memory_available_bytes": memory.available_bytes,
        "stoker_machine_memory_free_bytes": memory.free_bytes,
        "stoker_machine_memory_page_cache_bytes": memory.page_cache_bytes,
        "stoker_machine_memory_stalled_ratio": None if stalled_pct is None else stalled_pct / 100,
        "stoker_machine_swap_used_bytes": memory.swap_total_bytes - memory.swap_free_bytes,
    }


def _gpu_families(gpus: tuple[Gpu, ...]) -> Iterator[Metric]:
    told: Mapping[str, tuple[str, list[float | None]]] = {
        "stoker_gpu_power_watts": ("Power drawn.", [gpu.power_w for gpu in gpus]),
        "stoker_gpu_temperature_celsius": ("The chip's temperature.", [gpu.temperature_c for gpu in gpus]),
        "stoker_gpu_utilisation_ratio": (
            "Share of the time in which any kernel ran.", [_times(gpu.utilisation_pct, 0.01) for gpu in gpus],
        ),
        "stoker_gpu_clock_hertz": ("SM clock.", [_times(gpu.sm_clock_mhz, MHZ) for gpu in gpus]),
        "stoker_gpu_busy_clock_hertz": ("SM clock, while it works.", [_times(gpu.busy_clock_mhz, MHZ) for gpu in gpus]),
        "stoker_gpu_clock_max_hertz": ("Highest SM clock.", [_times(gpu.sm_clock_max_mhz, MHZ) for gpu in gpus]),
        "stoker_gpu_memory_used_bytes": ("Its own memory in use; a GB10 has none.", [gpu.memory_used_bytes for gpu in gpus]),
    }  # fmt: skip
    for name, (what, values) in told.items():
        family = GaugeMetricFamily(name, what, labels=["gpu"])
        for index, value in enumerate(values):
            if value is not None:
                family.add_metric([str(index)], value)
        yield family
    slowed = GaugeMetricFamily("stoker_gpu_slowed", "1 for each reason that slows it down now.", labels=["gpu", "reason"])
    for index, gpu in enumerate(gpus):
        for reason in SLOWED_BY if gpu.slowed_by is not None else ():
            slowed.add_metric([str(index), reason], float(reason in (gpu.slowed_by or ())))
    yield slowed


def _times(value: int | None, factor: float) -> float | None:
    return None if value is None else value * factor
