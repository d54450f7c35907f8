"""Reads the machine: processor, memory, GPUs, disk and engines."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import metadata
from typing import Any

from stoker.box import Box
from stoker.facts.memory import read_memory
from stoker.records import Disk, Gpu, Machine

GpuFacts = tuple[tuple[Gpu, ...], str | None, str | None]


def read_machine(box: Box, state_folder: str, read_gpus: Callable[[], GpuFacts] | None = None) -> Machine:
    """Returns what is known of the machine; whatever it does not tell is None."""
    host, kernel, arch = box.uname()
    gpus, driver, cuda = (read_gpus or read_nvidia)()
    disk = box.disk_bytes(state_folder)
    return Machine(
        hostname=host,
        arch=arch,
        kernel=kernel,
        cpu_model=_read_cpu_model(box),
        cpu_count=box.cpu_count(),
        memory=read_memory(box),
        gpus=gpus,
        driver=driver,
        cuda=cuda,
        disk=Disk(state_folder, *disk) if disk else None,
        engines={"llamacpp": read_package_version("xllamacpp")},
    )


def read_package_version(name: str) -> str | None:
    """Returns the version of an installed Python package, or None."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _read_cpu_model(box: Box) -> str | None:
    # Arm kernels give no model name in /proc/cpuinfo; lscpu decodes the part numbers.
    found = re.findall(r"^model name\s*:\s*(.+)$", box.read("/proc/cpuinfo") or "", re.MULTILINE)
    found = found or re.findall(r"^ *Model name:\s*(.+)$", box.run(("lscpu",)) or "", re.MULTILINE)
    return " + ".join(dict.fromkeys(name.strip() for name in found)) or None  # GB10 has two kinds of core


def read_nvidia() -> GpuFacts:
    """Returns (GPUs, driver version, CUDA version of the driver) through NVML; empty without an NVIDIA driver."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return (), None, None
    try:
        gpus = tuple(_read_gpu(pynvml, index) for index in range(_ask(pynvml, pynvml.nvmlDeviceGetCount) or 0))
        cuda = _ask(pynvml, pynvml.nvmlSystemGetCudaDriverVersion_v2)
        version = None if cuda is None else f"{cuda // 1000}.{cuda % 1000 // 10}"
        return gpus, _ask(pynvml, pynvml.nvmlSystemGetDriverVersion), version
    finally:
        pynvml.nvmlShutdown()


def _ask(pynvml: Any, question: Callable[..., Any], *words: Any) -> Any:
    try:
        return question(*words)
    except pynvml.NVMLError:  # GB10 answers 'not supported' to memory and power-limit questions: unknown, not zero
        return None


def _read_gpu(pynvml: Any, index: int) -> Gpu:
    device = _ask(pynvml, pynvml.nvmlDeviceGetHandleByIndex, index)
    if device is None:  # it fell off the bus, or we may not ask it; it is there all the same
        return Gpu("a GPU that does not answer", None, None, None, None, None, None)
    memory = _ask(pynvml, pynvml.nvmlDeviceGetMemoryInfo, device)
    capability = _ask(pynvml, pynvml.nvmlDeviceGetCudaComputeCapability, device)
    power_mw = _ask(pynvml, pynvml.nvmlDeviceGetPowerUsage, device)
    limit_mw = _ask(pynvml, pynvml.nvmlDeviceGetEnforcedPowerLimit, device)
    return Gpu(
        name=_ask(pynvml, pynvml.nvmlDeviceGetName, device) or "NVIDIA GPU",
        compute_capability=f"{capability[0]}.{capability[1]}" if capability else None,
        memory_total_bytes=memory.total if memory else None,
        memory_used_bytes=memory.used if memory else None,
        power_w=power_mw / 1000 if power_mw is not None else None,
        power_limit_w=limit_mw / 1000 if limit_mw is not None else None,
        sm_clock_mhz=_ask(pynvml, pynvml.nvmlDeviceGetClockInfo, device, pynvml.NVML_CLOCK_SM),
    )
