"""NVIDIA's driver library as a recorded box has it: it answers NVML's questions from what `nvidia-smi -q -x` printed there.

What nvidia-smi prints as N/A the real library refuses as not supported, and so does this one.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pynvml

from support import BOXES

MIB = 1024**2
REASONS = {
    "gpu_idle": pynvml.nvmlClocksEventReasonGpuIdle,
    "applications_clocks_setting": pynvml.nvmlClocksEventReasonApplicationsClocksSetting,
    "sw_power_cap": pynvml.nvmlClocksEventReasonSwPowerCap,
    "hw_slowdown": pynvml.nvmlClocksThrottleReasonHwSlowdown,
    "hw_thermal_slowdown": pynvml.nvmlClocksThrottleReasonHwThermalSlowdown,
    "hw_power_brake_slowdown": pynvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown,
    "sync_boost": pynvml.nvmlClocksEventReasonSyncBoost,
    "sw_thermal_slowdown": pynvml.nvmlClocksEventReasonSwThermalSlowdown,
    "display_clocks_setting": pynvml.nvmlClocksEventReasonDisplayClockSetting,
}


class MemoryInfo(NamedTuple):
    """nvmlMemory_t."""

    total: int
    used: int


class Utilisation(NamedTuple):
    """nvmlUtilization_t."""

    gpu: int


class Process(NamedTuple):
    """nvmlProcessInfo_t."""

    pid: int
    usedGpuMemory: int | None  # noqa: N815 - NVML's name


class RecordedNvml:
    """The functions of NVML that Stoker asks, over one recorded answer; `lost` makes every device fall off the bus."""

    def __init__(self, xml: str, capabilities: list[str], *, lost: bool = False) -> None:
        self.log = ElementTree.fromstring(xml)  # noqa: S314 - our own files
        self.devices = self.log.findall("gpu")
        self.capabilities = capabilities
        self.lost = lost
        self.open = 0

    def nvmlInit(self) -> None:  # noqa: N802
        self.open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.devices)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        if self.lost:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        return index

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        return self.log.findtext("driver_version", "")

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:  # noqa: N802
        major, minor = self.log.findtext("cuda_version", "").split(".")
        return int(major) * 1000 + int(minor) * 10

    def nvmlDeviceGetName(self, device: int) -> str:  # noqa: N802
        return self.said(device, "product_name")

    def nvmlDeviceGetUUID(self, device: int) -> str:  # noqa: N802
        return self.devices[device].findtext("uuid", "")

    def nvmlDeviceGetCudaComputeCapability(self, device: int) -> tuple[int, int]:  # noqa: N802
        major, minor = self.capabilities[device].split(".")
        return int(major), int(minor)

    def nvmlDeviceGetMemoryInfo(self, device: int) -> MemoryInfo:  # noqa: N802
        total, used = (int(self.number(device, f"fb_memory_usage/{name}")) for name in ("total", "used"))
        return MemoryInfo(total * MIB, used * MIB)

    def nvmlDeviceGetPowerUsage(self, device: int) -> int:  # noqa: N802
        return round(self.number(device, "gpu_power_readings/average_power_draw") * 1000)

    def nvmlDeviceGetEnforcedPowerLimit(self, device: int) -> int:  # noqa: N802
        return round(self.number(device, "gpu_power_readings/current_power_limit") * 1000)

    def nvmlDeviceGetPowerManagementDefaultLimit(self, device: int) -> int:  # noqa: N802
        return round(self.number(device, "gpu_power_readings/default_power_limit") * 1000)

    def nvmlDeviceGetClockInfo(self, device: int, kind: int) -> int:  # noqa: N802
        assert kind == pynvml.NVML_CLOCK_SM
        return int(self.number(device, "clocks/sm_clock"))

    def nvmlDeviceGetMaxClockInfo(self, device: int, kind: int) -> int:  # noqa: N802
        assert kind == pynvml.NVML_CLOCK_SM
        return int(self.number(device, "max_clocks/sm_clock"))

    def nvmlDeviceGetTemperature(self, device: int, sensor: int) -> int:  # noqa: N802
        assert sensor == pynvml.NVML_TEMPERATURE_GPU
        return int(self.number(device, "temperature/gpu_temp"))

    def nvmlDeviceGetUtilizationRates(self, device: int) -> Utilisation:  # noqa: N802
        return Utilisation(int(self.number(device, "utilization/gpu_util")))

    def nvmlDeviceGetCurrentClocksEventReasons(self, device: int) -> int:  # noqa: N802
        said = {name: self.said(device, f"clocks_event_reasons/clocks_event_reason_{name}") for name in REASONS}
        return sum(REASONS[name] for name, answer in said.items() if answer == "Active")

    def nvmlDeviceGetComputeRunningProcesses(self, device: int) -> list[Process]:  # noqa: N802
        running = self.devices[device].findall("processes/process_info")
        return [Process(int(one.findtext("pid", "")), _mib(one.findtext("used_memory", ""))) for one in running]

    def said(self, device: int, path: str) -> str:
        """Returns what stands there, or raises what the library raises for N/A."""
        text = (self.devices[device].findtext(path) or "N/A").strip()
        if text == "N/A":
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return text

    def number(self, device: int, path: str) -> float:
        """Returns the number before the unit."""
        return float(self.said(device, path).split()[0])


def _mib(text: str) -> int | None:
    found = re.fullmatch(r"(\d+) MiB", text)
    return int(found[1]) * MIB if found else None


def recorded_nvml(box: str, replace: dict[str, str] | None = None, *, lost: bool = False) -> RecordedNvml:
    """Returns the library of a recorded box, with some of what it printed replaced."""
    run = BOXES / box / "run"
    xml = (run / "nvidia-smi_-q_-x.txt").read_text()
    for before, after in (replace or {}).items():
        assert before in xml
        xml = xml.replace(before, after)
    return RecordedNvml(xml, _capabilities(run / "nvidia-smi.csv"), lost=lost)


def _capabilities(file: Path) -> list[str]:
    return [row["compute_cap"] for row in csv.DictReader(file.read_text().splitlines(), skipinitialspace=True)]
