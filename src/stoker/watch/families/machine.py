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
    yield from _memory_families(machine.memory, machine.floor_bytes)
    yield from _gpu_families(machine.gpus)
    for name, what, index in (("total", "Size", 1), ("free", "Room left", 2)):
        family = GaugeMetricFamily(f"stoker_disk_{name}_bytes", f"{what} of a disk, by what lies on it.", labels=["holds"])
        for disk in machine.disks:
            family.add_metric([disk.holds], disk[index])
        yield family


def _memory_families(memory: Memory | None, floor_bytes: int) -> Iterator[Metric]:
    stalled = memory.full_stall_pct if memory else None
    told: Mapping[str, tuple[str, float | None]] = {
        "stoker_machine_memory_total_bytes": ("The machine's memory.", memory and memory.total_bytes),
        "stoker_machine_memory_available_bytes": ("MemAvailable, the truth for a start.", memory and memory.available_bytes),
        "stoker_machine_memory_free_bytes": ("MemFree, which CUDA sees on a GB10.", memory and memory.free_bytes),
        "stoker_machine_memory_page_cache_bytes": ("Cached files.", memory and memory.page_cache_bytes),
        "stoker_machine_memory_floor_bytes": ("What has to stay available (limits.memory_floor_bytes).", floor_bytes),
        "stoker_machine_memory_stalled_ratio": (
            "Share of 10 s in which nothing ran for want of memory (PSI, full).", None if stalled is None else stalled / 100,
        ),
        "stoker_machine_swap_used_bytes": (
            "Swapped out.", memory and memory.swap_total_bytes - memory.swap_free_bytes,
        ),
    }  # fmt: skip
    for name, (what, value) in told.items():
        family = GaugeMetricFamily(name, what)
        if value is not None:
            family.add_metric([], value)
        yield family


def _gpu_families(gpus: tuple[Gpu, ...]) -> Iterator[Metric]:
    told = {
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
