"""What NVIDIA's driver tells of a GPU; what it refuses to tell is unknown, and what it tells as zero is zero."""

from __future__ import annotations

import os
from xml.etree import ElementTree

import pynvml
import pytest

from recorded_nvml import MIB, Process, RecordedNvml, recorded_nvml
from stoker.facts.machine.clocks import REASONS, busy_clock_mhz, name_reasons
from stoker.facts.machine.cuda import read_cuda_memory
from stoker.facts.machine.nvidia import Nvidia, read_gpu_processes, read_nvidia, watching_card, watching_gpus
from stoker.records import Gpu, GpuProcess

AT_REST = {"<gpu_util>94 %": "<gpu_util>3 %"}


def test_gb10s_driver_answers_not_supported_which_is_unknown_and_not_zero() -> None:
    found = read_nvidia(recorded_nvml("gb10-128gb"))
    assert found.gpus == (
        Gpu(
            "NVIDIA GB10", "12.1", None, None, 47.02, None, 2418, sm_clock_max_mhz=3003, utilisation_pct=94,
            temperature_c=71, slowed_by=(), busy_clock_mhz=2418,
        ),
    )  # fmt: skip
    assert (found.driver, found.cuda, found.unified_memory) == ("580.173.02", "13.0", True)


def test_what_an_h200s_driver_says_is_read_in_bytes_and_watts() -> None:
    found = read_nvidia(recorded_nvml("h200"))
    assert found.gpus == (
        Gpu(
            "NVIDIA H200", "9.0", 143771 * MIB, 0, 78.61, 700.0, 345, sm_clock_max_mhz=1980, power_limit_default_w=700.0,
            utilisation_pct=0, temperature_c=34, slowed_by=("idle",), busy_clock_mhz=None,
        ),
    )  # fmt: skip
    assert found.unified_memory is False


@pytest.mark.parametrize(
    ("visible", "names"),
    [
        (None, ["NVIDIA H200", "NVIDIA GB10"]), ("1", ["NVIDIA GB10"]), ("1,0", ["NVIDIA GB10", "NVIDIA H200"]),
        ("GPU-of-gb10", ["NVIDIA GB10"]), ("MIG-of-something", ["NVIDIA H200", "NVIDIA GB10"]),
        ("", []), ("-1", []), ("1,-1,0", ["NVIDIA GB10"]), ("7", []),
    ],
)  # fmt: skip
def test_gpus_that_no_engine_of_ours_sees_are_left_out(
    visible: str | None, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    both, other = recorded_nvml("h200"), recorded_nvml("gb10-128gb")
    [gpu] = other.devices
    for uuid in gpu.findall("uuid"):
        gpu.remove(uuid)
    ElementTree.SubElement(gpu, "uuid").text = "GPU-of-gb10"
    both.devices.append(gpu)
    both.capabilities += other.capabilities
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert [one.name for one in read_nvidia(both).gpus] == names
    with watching_gpus(both) as look:
        assert [one.name for one in look()] == names
    with watching_card(both) as card:
        assert (card() is not None) == (names[:1] == ["NVIDIA H200"]), "a GB10 has no memory of its own"
    assert {one.gpu for one in read_gpu_processes(both)} <= {0, 1}


def test_a_card_with_a_lowered_power_limit_shows_both_limits_and_why_it_is_slow() -> None:
    [gpu] = read_nvidia(recorded_nvml("pc-ada")).gpus
    assert (gpu.compute_capability, gpu.memory_total_bytes, gpu.memory_used_bytes) == ("8.9", 24564 * MIB, 20145 * MIB)
    assert (gpu.power_limit_w, gpu.power_limit_default_w) == (400.0, 450.0)
    assert gpu.slowed_by == ("the power limit",)
    assert gpu.busy_clock_mhz == 2520


def test_a_gb10_stuck_at_low_power_is_told_by_its_clock_at_work_and_by_no_reason() -> None:
    stuck = {"<sm_clock>2418 MHz": "<sm_clock>799 MHz", "47.02 W": "19.50 W"}
    [gpu] = read_nvidia(recorded_nvml("gb10-128gb", stuck)).gpus
    assert (gpu.busy_clock_mhz, gpu.power_w, gpu.slowed_by) == (799, 19.5, ())


def test_the_low_clock_of_a_gpu_at_rest_is_no_busy_clock() -> None:
    [gpu] = read_nvidia(recorded_nvml("gb10-128gb", {"<sm_clock>2418": "<sm_clock>208"} | AT_REST)).gpus
    assert (gpu.sm_clock_mhz, gpu.busy_clock_mhz) == (208, None)


def test_a_gpu_that_fell_off_the_bus_is_told_and_does_not_end_the_reading() -> None:
    found = read_nvidia(recorded_nvml("pc-ada", lost=True))
    assert [gpu.name for gpu in found.gpus] == ["a GPU that does not answer"]
    assert found.gpus[0].memory_total_bytes is None
    assert found.unified_memory is None  # its silence about memory says nothing of sharing
    assert found.driver == "570.195.03"


class Forbidding(RecordedNvml):
    """A library that keeps memory to itself, as it does for a user without the right."""

    def nvmlDeviceGetMemoryInfo(self, device: int) -> object:  # type: ignore[override]  # noqa: N802
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NO_PERMISSION)


def test_memory_that_we_may_not_ask_about_is_unknown_and_not_shared() -> None:
    whole = recorded_nvml("pc-ada")
    found = read_nvidia(Forbidding("<log><driver_version>1</driver_version><cuda_version>12.8</cuda_version></log>", []))
    assert found == Nvidia((), "1", "12.8", None)
    forbidding = Forbidding.__new__(Forbidding)
    forbidding.__dict__ |= whole.__dict__
    found = read_nvidia(forbidding)
    assert (found.gpus[0].memory_total_bytes, found.unified_memory) == (None, None)


def test_zero_watts_and_zero_per_cent_are_zero() -> None:
    zeros = {"47.02 W": "0.00 W", "<gpu_util>94 %": "<gpu_util>0 %", "<gpu_temp>71 C": "<gpu_temp>0 C"}
    [gpu] = read_nvidia(recorded_nvml("gb10-128gb", zeros)).gpus
    assert (gpu.power_w, gpu.utilisation_pct, gpu.temperature_c) == (0.0, 0, 0)


def test_the_library_is_closed_after_each_reading() -> None:
    library = recorded_nvml("gb10-128gb")
    read_nvidia(library)
    read_gpu_processes(library)
    assert library.open == 0


def test_a_machine_without_a_driver_has_no_gpus() -> None:
    found = read_nvidia()
    assert (found.driver is None) == (found.gpus == ()) == (found.cuda is None)


def test_processes_on_the_gpu_are_told_with_what_they_hold_or_that_it_is_unknown() -> None:
    found = read_gpu_processes(recorded_nvml("gb10-128gb"))
    # The recorded numbers are beyond the kernel's highest, so nobody here has such a process.
    assert found == (GpuProcess(0, 4999999, None, 85511 * MIB), GpuProcess(0, 4999998, None, None))


class OurOwn(RecordedNvml):
    """A library that finds this very process on the GPU."""

    def nvmlDeviceGetComputeRunningProcesses(self, device: int) -> list[Process]:  # noqa: N802
        return [Process(os.getpid(), 5)]


def test_a_process_that_lives_here_is_named() -> None:
    library = OurOwn.__new__(OurOwn)
    library.__dict__ |= recorded_nvml("h200").__dict__
    [found] = read_gpu_processes(library)
    assert (found.pid, found.used_bytes) == (os.getpid(), 5)
    assert found.name


def test_a_gpu_that_fell_off_the_bus_has_no_processes() -> None:
    assert read_gpu_processes(recorded_nvml("gb10-128gb", lost=True)) == ()


def test_every_reason_of_the_driver_has_a_word() -> None:
    names = [name for name in dir(pynvml) if name.startswith("nvmlClocksEventReason")]
    bits = {getattr(pynvml, name) for name in names} - {0, pynvml.nvmlClocksEventReasonAll}
    assert bits <= REASONS.keys()
    assert name_reasons(0) == ()
    assert name_reasons(None) is None
    assert name_reasons(0x24) == ("the power limit", "heat (software)")
    assert name_reasons(0x8001) == ("idle", "a reason that Stoker does not know (0x8000)")


@pytest.mark.parametrize(
    ("busy_pct", "slowed_by", "clock_mhz"),
    [
        (100, (), 799),
        (90, None, 799),
        (89, (), None),
        (None, (), None),
        (100, ("idle",), None),
        (95, ("the power limit",), 799),
    ],
)
def test_a_clock_counts_when_the_gpu_was_at_work(
    busy_pct: int | None, slowed_by: tuple[str, ...] | None, clock_mhz: int | None
) -> None:
    assert busy_clock_mhz(799, busy_pct, slowed_by) == clock_mhz
    assert busy_clock_mhz(None, busy_pct, slowed_by) is None


@pytest.mark.parametrize("library", ["no-such-library.so.1", "libc.so.6"])
def test_without_cudas_library_nobody_knows_what_cuda_sees(library: str) -> None:
    assert read_cuda_memory(library) is None
