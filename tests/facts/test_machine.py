"""The machine's facts, from recorded boxes; what a driver does not tell stays unknown."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pynvml
import pytest

from stoker.box import LocalBox, RecordedBox
from stoker.errors import StokerError
from stoker.facts.machine import GpuFacts, _read_gpu, read_machine, read_nvidia, read_package_version
from stoker.facts.memory import read_holders, read_memory
from stoker.records import GIB, Gpu
from support import BOXES, fails


def no_gpus() -> GpuFacts:
    return (), None, None


class MemoryInfo(NamedTuple):
    total: int
    used: int


class FakeDriver:
    """Answers as NVIDIA's driver does for one kind of GPU; what it does not support it refuses with the real error."""

    NVMLError = pynvml.NVMLError
    NVML_CLOCK_SM = pynvml.NVML_CLOCK_SM

    def __init__(self, answers: dict[str, object], error: int = pynvml.NVML_ERROR_NOT_SUPPORTED) -> None:
        self.answers = answers
        self.error = error

    def ask(self, name: str) -> object:
        if name not in self.answers:
            raise pynvml.NVMLError(self.error)
        return self.answers[name]

    def nvmlDeviceGetHandleByIndex(self, index: int) -> object:  # noqa: N802 - NVML's names
        return self.ask("handle")

    def nvmlDeviceGetName(self, device: object) -> object:  # noqa: N802
        return self.ask("name")

    def nvmlDeviceGetMemoryInfo(self, device: object) -> object:  # noqa: N802
        return self.ask("memory")

    def nvmlDeviceGetCudaComputeCapability(self, device: object) -> object:  # noqa: N802
        return self.ask("capability")

    def nvmlDeviceGetPowerUsage(self, device: object) -> object:  # noqa: N802
        return self.ask("power")

    def nvmlDeviceGetEnforcedPowerLimit(self, device: object) -> object:  # noqa: N802
        return self.ask("limit")

    def nvmlDeviceGetClockInfo(self, device: object, kind: int) -> object:  # noqa: N802
        assert kind == pynvml.NVML_CLOCK_SM
        return self.ask("clock")


def test_gb10_is_an_arm_machine_whose_two_kinds_of_core_are_named() -> None:
    machine = read_machine(RecordedBox(BOXES / "gb10-128gb"), "/state", no_gpus)
    assert (machine.arch, machine.kernel, machine.cpu_count) == ("aarch64", "6.14.0-1013-nvidia", 20)
    assert machine.cpu_model == "Cortex-X925 + Cortex-A725"
    assert 119 * GIB < machine.memory.total_bytes < 122 * GIB
    assert machine.memory.available_bytes == 118566368 * 1024
    assert machine.memory.full_stall_pct == 0.0


def test_gb10s_driver_answers_not_supported_which_is_unknown_and_not_zero() -> None:
    driver = FakeDriver({"handle": 1, "name": "NVIDIA GB10", "capability": (12, 1), "power": 11170, "clock": 2418})
    assert _read_gpu(driver, 0) == Gpu("NVIDIA GB10", "12.1", None, None, 11.17, None, 2418)


def test_what_an_h200s_driver_says_is_read_in_bytes_and_watts() -> None:
    name, capability, total, used, power, clock, _ = (
        (BOXES / "h200" / "run" / "nvidia-smi.csv").read_text().splitlines()[1].split(", ")
    )
    major, _, minor = capability.partition(".")
    driver = FakeDriver({
        "handle": 1, "name": name, "capability": (int(major), int(minor)), "limit": 700_000,
        "memory": MemoryInfo(int(total.split()[0]) * 1024**2, int(used.split()[0]) * 1024**2),
        "power": int(float(power.split()[0]) * 1000), "clock": int(clock.split()[0]),
    })  # fmt: skip
    assert _read_gpu(driver, 0) == Gpu("NVIDIA H200", "9.0", 143771 * 1024**2, 0, 78.6, 700.0, 345)


def test_a_gpu_that_answers_nothing_has_only_unknowns() -> None:
    gpu = _read_gpu(FakeDriver({"handle": 1}), 0)
    assert gpu == Gpu("NVIDIA GPU", None, None, None, None, None, None)


def test_a_gpu_that_fell_off_the_bus_is_told_and_does_not_end_the_reading() -> None:
    gpu = _read_gpu(FakeDriver({}, pynvml.NVML_ERROR_GPU_IS_LOST), 0)
    assert gpu.name == "a GPU that does not answer"
    assert gpu.memory_total_bytes is None


def test_zero_watts_are_zero_watts() -> None:
    gpu = _read_gpu(FakeDriver({"handle": 1, "power": 0, "limit": 0, "clock": 0}), 0)
    assert (gpu.power_w, gpu.power_limit_w, gpu.sm_clock_mhz) == (0.0, 0.0, 0)


def test_the_gpus_that_were_read_are_the_machines() -> None:
    h200 = Gpu("NVIDIA H200", "9.0", 1, 0, None, None, None)
    machine = read_machine(RecordedBox(BOXES / "h200"), "/state", lambda: ((h200,), "580.159.04", "13.0"))
    assert (machine.gpus, machine.driver, machine.cuda) == ((h200,), "580.159.04", "13.0")
    assert machine.cpu_model == "Intel(R) Xeon(R) Platinum 8480+"
    assert (machine.cpu_count, machine.disk) == (16, None)
    assert machine.memory.full_stall_pct is None


def test_an_ordinary_machine_has_no_gpu_and_no_swap() -> None:
    machine = read_machine(RecordedBox(BOXES / "pc-24gb"), "/state", no_gpus)
    assert (machine.hostname, machine.arch, machine.cpu_count, machine.cpu_model) == ("pc", "x86_64", 2, "AMD EPYC")
    memory = machine.memory
    assert (memory.total_bytes, memory.available_bytes) == (24684092 * 1024, 23623204 * 1024)
    assert (memory.free_bytes, memory.page_cache_bytes) == (17258712 * 1024, (5869920 + 123412) * 1024)
    assert (memory.swap_total_bytes, memory.swap_free_bytes) == (0, 0)
    assert memory.full_stall_pct == 1.25


def test_a_processor_that_nothing_names_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "root" / "proc").mkdir(parents=True)
    (tmp_path / "root" / "proc" / "meminfo").write_text("MemTotal: 9 kB\nMemFree: 3 kB\nMemAvailable: 4 kB\n")
    (tmp_path / "uname").write_text("h 6.1 riscv64")
    machine = read_machine(RecordedBox(tmp_path), "/state", no_gpus)
    assert machine.cpu_model is None
    assert (machine.memory.total_bytes, machine.memory.swap_total_bytes) == (9216, 0)


@pytest.mark.parametrize("text", ["", "MemTotal: 9 kB\nMemFree: 3 kB\n", "MemTotal: many kB\n"])
def test_a_machine_that_does_not_tell_its_memory_is_an_error_with_a_next_step(tmp_path: Path, text: str) -> None:
    (tmp_path / "root" / "proc").mkdir(parents=True)
    (tmp_path / "root" / "proc" / "meminfo").write_text(text)
    with fails(StokerError, "memory is unknown", "MemAvailable", "run Stoker on Linux"):
        read_memory(RecordedBox(tmp_path))


def test_this_machine_is_read_without_an_error(tmp_path: Path) -> None:
    machine = read_machine(LocalBox(), str(tmp_path))
    assert 0 < machine.memory.available_bytes <= machine.memory.total_bytes
    assert machine.cpu_count >= 1
    assert machine.disk is not None
    assert 0 <= machine.disk.free_bytes <= machine.disk.total_bytes
    assert machine.engines["llamacpp"]


def test_a_machine_without_a_driver_has_no_gpus() -> None:
    gpus, driver, cuda = read_nvidia()
    assert (driver is None) == (gpus == ())
    assert (cuda is None) == (gpus == ())


def test_a_package_that_is_not_installed_has_no_version() -> None:
    assert read_package_version("no-such-package-of-ours") is None


def test_the_holders_of_memory_are_the_largest_first() -> None:
    ballast = bytearray(80 * 1024**2)
    ballast[::4096] = b"x" * len(ballast[::4096])
    holders = read_holders(3)
    sizes = [holder.resident_bytes for holder in holders]
    assert sizes == sorted(sizes, reverse=True)
    assert 1 <= len(holders) <= 3
    assert min(sizes) >= 64 * 1024**2


def test_a_local_box_tells_none_where_there_is_nothing() -> None:
    box = LocalBox()
    assert box.read("/proc/no-such-file") is None
    assert box.run(("/no/such/program",)) is None
    assert box.run(("false",)) is None
    assert box.disk_bytes("/no/such/folder") is None


def test_a_local_box_asks_programs_in_english() -> None:
    assert "LC_ALL=C" in (LocalBox().run(("env",)) or "").splitlines()
