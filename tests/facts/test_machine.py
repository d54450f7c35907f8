"""The machine's facts, from recorded boxes; what a driver does not tell stays unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from recorded_nvml import recorded_nvml
from stoker.box import LocalBox, RecordedBox
from stoker.errors import StokerError
from stoker.facts.machine.memory import read_holders, read_memory
from stoker.facts.machine.nvidia import Nvidia, read_nvidia
from stoker.facts.machine.read import read_machine, read_package_version
from stoker.records import GIB, Machine
from support import BOXES, fails


def no_gpus() -> Nvidia:
    return Nvidia()


def test_gb10_is_an_arm_machine_whose_two_kinds_of_core_are_named() -> None:
    machine = read_machine(RecordedBox(BOXES / "gb10-128gb"), "/state", no_gpus)
    assert (machine.arch, machine.kernel, machine.cpu_count) == ("aarch64", "6.14.0-1013-nvidia", 20)
    assert machine.cpu_model == "Cortex-X925 + Cortex-A725"
    assert 119 * GIB < machine.memory.total_bytes < 122 * GIB
    assert machine.memory.available_bytes == 118566368 * 1024
    assert machine.memory.full_stall_pct == 0.0


def read_gb10(name: str) -> Machine:
    return read_machine(RecordedBox(BOXES / name), "/state", lambda: read_nvidia(recorded_nvml(name)))


def test_a_gb10_shares_its_memory_and_tells_none_of_its_own() -> None:
    machine = read_gb10("gb10-128gb")
    assert machine.unified_memory is True
    assert [gpu.memory_total_bytes for gpu in machine.gpus] == [None]
    assert (machine.driver, machine.cuda) == ("580.173.02", "13.0")
    assert machine.cuda_visible_bytes is None  # nobody measured it


def test_the_gb10_of_64_gb_differs_in_its_memory_alone() -> None:
    small, large = read_gb10("gb10-64gb"), read_gb10("gb10-128gb")
    assert 58 * GIB < small.memory.total_bytes < 64 * GIB
    assert (small.arch, small.cpu_model, small.unified_memory) == (large.arch, large.cpu_model, large.unified_memory)
    assert small.gpus[0].compute_capability == large.gpus[0].compute_capability == "12.1"


def test_the_makers_system_is_named_with_its_last_update() -> None:
    machine = read_machine(RecordedBox(BOXES / "gb10-128gb"), "/state", no_gpus)
    assert machine.os == "Ubuntu 24.04.3 LTS, NVIDIA DGX Spark, 7.3.1"
    assert (machine.product, machine.firmware) == ("NVIDIA_DGX_Spark", "5.36_0ACUM018")


def test_a_machine_that_names_neither_system_nor_product_leaves_them_unknown() -> None:
    machine = read_machine(RecordedBox(BOXES / "h200"), "/state", no_gpus)
    assert (machine.os, machine.product, machine.firmware, machine.driver_options) == (None, None, None, {})


def test_the_file_that_halved_a_gb10s_memory_is_shown_with_what_it_says(tmp_path: Path) -> None:
    write_box(tmp_path)
    for folder, name, text in (
        ("etc", "zz-nvidia-drm-override.conf", "# ours\noptions nvidia-drm   modeset=1\n"),
        ("etc", "sound.conf", "options snd_hda_intel power_save=1\n"),
        ("etc", "off.conf.bak", "options nvidia NVreg_A=1\n"),
        ("etc", "commented.conf", "# options nvidia NVreg_A=1\n"),
        ("usr/lib", "zz-nvidia-drm-override.conf", "options nvidia-drm modeset=0\n"),  # the one in /etc hides it
        ("usr/lib", "nvidia.conf", "blacklist nouveau\nalias char-major-195* nvidia\n"),
    ):
        file = tmp_path / "root" / folder / "modprobe.d" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert read_machine(RecordedBox(tmp_path), "/state", no_gpus).driver_options == {
        "/usr/lib/modprobe.d/nvidia.conf": ("alias char-major-195* nvidia",),
        "/etc/modprobe.d/zz-nvidia-drm-override.conf": ("options nvidia-drm modeset=1",),
    }


def write_box(folder: Path, meminfo: str = "MemTotal: 9 kB\nMemFree: 3 kB\nMemAvailable: 4 kB\n") -> None:
    (folder / "root" / "proc").mkdir(parents=True)
    (folder / "root" / "proc" / "meminfo").write_text(meminfo)
    (folder / "uname").write_text("h 6.1 riscv64")


def test_the_gpus_that_were_read_are_the_machines() -> None:
    nvidia = read_nvidia(recorded_nvml("h200"))
    machine = read_machine(RecordedBox(BOXES / "h200"), "/state", lambda: nvidia)
    assert (machine.gpus, machine.driver, machine.cuda) == (nvidia.gpus, "580.159.04", "13.0")
    assert machine.unified_memory is False
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
    write_box(tmp_path)
    machine = read_machine(RecordedBox(tmp_path), "/state", no_gpus)
    assert machine.cpu_model is None
    assert (machine.memory.total_bytes, machine.memory.swap_total_bytes) == (9216, 0)


@pytest.mark.parametrize("text", ["", "MemTotal: 9 kB\nMemFree: 3 kB\n", "MemTotal: many kB\n"])
def test_a_machine_that_does_not_tell_its_memory_is_an_error_with_a_next_step(tmp_path: Path, text: str) -> None:
    write_box(tmp_path, text)
    with fails(StokerError, "memory is unknown", "MemAvailable", "run Stoker on Linux"):
        read_memory(RecordedBox(tmp_path))


def test_this_machine_is_read_without_an_error(tmp_path: Path) -> None:
    machine = read_machine(LocalBox(), str(tmp_path))
    assert (machine.unified_memory is None) == (machine.gpus == ())
    assert machine.details is None  # they take longer, and a plan does not ask
    assert 0 < machine.memory.available_bytes <= machine.memory.total_bytes
    assert machine.cpu_count >= 1
    assert machine.disk is not None
    assert 0 <= machine.disk.free_bytes <= machine.disk.total_bytes
    assert machine.engines["llamacpp"]


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
    assert box.names("/no/such/folder") == []
    assert box.find_program("no-such-program-of-ours") is None


def test_a_local_box_lists_a_folder_in_order_and_finds_programs(tmp_path: Path) -> None:
    for name in ("b", "a", ".hidden"):
        (tmp_path / name).touch()
    assert LocalBox().names(str(tmp_path)) == [".hidden", "a", "b"]
    assert (LocalBox().find_program("ls") or "").endswith("/ls")


def test_a_local_box_asks_programs_in_english() -> None:
    assert "LC_ALL=C" in (LocalBox().run(("env",)) or "").splitlines()
