"""Reads NVIDIA's GPUs through the driver's own library (NVML).

Readers take an object with NVML's functions: `pynvml` itself, or a recorded twin. What a driver does not support it answers
with an error of its own, and a GB10's driver does so for memory and power limits: unknown, not zero.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import msgspec

from stoker.box import is_running
from stoker.facts.machine.clocks import busy_clock_mhz, name_reasons
from stoker.facts.machine.processes import read_process_name
from stoker.records import CardMemory, Gpu, GpuProcess

# NVML's own numbers, which nvml.h fixes: NVML_CLOCK_SM and NVML_TEMPERATURE_GPU.
SM = 1
CHIP = 0
VISIBLE = "CUDA_VISIBLE_DEVICES"
WHOLE = re.compile(r"-?\d+")


class Nvidia(NamedTuple):
    """The GPUs, the driver's version, the CUDA version it offers, and whether the first GPU shares the machine's memory."""

    gpus: tuple[Gpu, ...] = ()
    driver: str | None = None
    cuda: str | None = None
    unified_memory: bool | None = None


def read_nvidia(nvml: Any = None) -> Nvidia:
    """Returns what the driver tells; nothing without an NVIDIA driver."""
    with _asking(nvml) as driver:
        if driver is None:
            return Nvidia()
        devices = [_device(driver, index) for index in _visible(driver)]
        cuda = _ask(driver.nvmlSystemGetCudaDriverVersion_v2)
        return Nvidia(
            tuple(_read_gpu(driver, device) for device in devices),
            _ask(driver.nvmlSystemGetDriverVersion),
            None if cuda is None else f"{cuda // 1000}.{cuda % 1000 // 10}",
            _shares_memory(driver, devices[0]) if devices else None,
        )


@contextlib.contextmanager
def watching_gpus(nvml: Any = None) -> Iterator[Callable[[], tuple[Gpu, ...]]]:
    """Gives a function that reads the GPUs again and again; the library stays open, since opening takes longest."""
    with _asking(nvml) as driver:
        devices = [_device(driver, index) for index in _visible(driver)]
        yield lambda: tuple(_read_gpu(driver, device) for device in devices)


@contextlib.contextmanager
def watching_card(nvml: Any = None) -> Iterator[Callable[[], CardMemory | None]]:
    """Gives a function that reads the first visible GPU's own memory again and again; None where it does not tell of any."""
    with _asking(nvml) as driver:
        yield lambda: _read_card(driver) if driver else None


def read_gpu_processes(nvml: Any = None) -> tuple[GpuProcess, ...]:
    """Returns the processes that compute on a GPU, those that hold most first."""
    with _asking(nvml) as driver:
        found = [process for index in _visible(driver) for process in _read_processes(driver, index)]
    return tuple(sorted(found, key=lambda process: -(process.used_bytes or 0)))


@contextlib.contextmanager
def _asking(nvml: Any) -> Iterator[Any]:
    """Opens the library, and closes it afterwards; gives None where there is no driver."""
    import pynvml  # a tenth of what a start takes, and most verbs ask no GPU

    library = nvml or pynvml
    try:
        library.nvmlInit()
    except pynvml.NVMLError:
        yield None
        return
    try:
        yield library
    finally:
        library.nvmlShutdown()


def _error() -> type[Exception]:
    import pynvml

    error: type[Exception] = pynvml.NVMLError
    return error


def _visible(nvml: Any) -> Sequence[int]:
    """Returns which GPUs the engines see that we start: `CUDA_VISIBLE_DEVICES`, which they inherit, leaves others out.

    As CUDA reads it: numbers and UUIDs, up to a number that is none. Of other words (parts of a GPU) nothing is known, and
    all GPUs are taken.
    """
    every = range((_ask(nvml.nvmlDeviceGetCount) or 0) if nvml else 0)
    if (said := os.environ.get(VISIBLE)) is None:
        return every
    known = {str(index): index for index in every} | {_ask(nvml.nvmlDeviceGetUUID, _device(nvml, one)): one for one in every}
    words = [word.strip() for word in said.split(",") if word.strip()]
    seen = list(takewhile(lambda word: word in known or not WHOLE.fullmatch(word), words))
    return [known[word] for word in seen] if all(word in known for word in seen) else every


def _device(nvml: Any, index: int) -> Any:
    return _ask(nvml.nvmlDeviceGetHandleByIndex, index)


def _ask(question: Callable[..., Any], *words: Any) -> Any:
    try:
        return question(*words)
    except _error():
        return None


def _shares_memory(nvml: Any, device: Any) -> bool | None:
    """Tells whether a GPU has no memory of its own.

    A driver that knows the question and cannot answer it for this GPU has no separate memory to tell of; one that answers
    has. A GPU that is lost or that we may not ask leaves it unknown.
    """
    if device is None:
        return None
    try:
        nvml.nvmlDeviceGetMemoryInfo(device)
    except _error() as problem:
        import pynvml

        return True if getattr(problem, "value", None) == pynvml.NVML_ERROR_NOT_SUPPORTED else None
    return False


def _read_gpu(nvml: Any, device: Any) -> Gpu:
    if device is None:  # it fell off the bus, or we may not ask it; it is there all the same
        return Gpu("a GPU that does not answer", None, None, None, None, None, None)
    memory = _ask(nvml.nvmlDeviceGetMemoryInfo, device)
    capability = _ask(nvml.nvmlDeviceGetCudaComputeCapability, device)
    utilisation = _ask(nvml.nvmlDeviceGetUtilizationRates, device)
    slowed_by = name_reasons(_ask(nvml.nvmlDeviceGetCurrentClocksEventReasons, device))
    busy_pct = utilisation.gpu if utilisation else None
    clock_mhz = _ask(nvml.nvmlDeviceGetClockInfo, device, SM)
    return Gpu(
        name=_ask(nvml.nvmlDeviceGetName, device) or "NVIDIA GPU",
        compute_capability=f"{capability[0]}.{capability[1]}" if capability else None,
        memory_total_bytes=memory.total if memory else None,
        memory_used_bytes=memory.used if memory else None,
        power_w=_watts(_ask(nvml.nvmlDeviceGetPowerUsage, device)),
        power_limit_w=_watts(_ask(nvml.nvmlDeviceGetEnforcedPowerLimit, device)),
        sm_clock_mhz=clock_mhz,
        sm_clock_max_mhz=_ask(nvml.nvmlDeviceGetMaxClockInfo, device, SM),
        power_limit_default_w=_watts(_ask(nvml.nvmlDeviceGetPowerManagementDefaultLimit, device)),
        utilisation_pct=busy_pct,
        temperature_c=_ask(nvml.nvmlDeviceGetTemperature, device, CHIP),
        slowed_by=slowed_by,
        busy_clock_mhz=busy_clock_mhz(clock_mhz, busy_pct, slowed_by),
    )


def _read_card(nvml: Any) -> CardMemory | None:
    index = next(iter(_visible(nvml)), None)
    device = None if index is None else _device(nvml, index)
    memory = _ask(nvml.nvmlDeviceGetMemoryInfo, device) if device is not None else None
    if index is None or memory is None:
        return None
    listed = sorted(_read_processes(nvml, index), key=lambda process: -(process.used_bytes or 0))
    processes = (one if is_running(one.pid) else msgspec.structs.replace(one, name=None) for one in listed)
    name = _ask(nvml.nvmlDeviceGetName, device) or "NVIDIA GPU"
    return CardMemory(name, memory.total, memory.total - memory.used, tuple(processes))


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000


def _read_processes(nvml: Any, index: int) -> list[GpuProcess]:
    device = _device(nvml, index)
    running = _ask(nvml.nvmlDeviceGetComputeRunningProcesses, device) if device is not None else None
    return [GpuProcess(index, one.pid, read_process_name(one.pid), one.usedGpuMemory) for one in running or ()]
