"""Reads the machine: processor, memory, GPUs, system and engines. It stays quick: a plan and the daemon ask for it.

What takes longer is in `facts.details`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import metadata

from stoker.box import Box
from stoker.facts.machine.memory import read_memory
from stoker.facts.machine.network import read_ports
from stoker.facts.machine.nvidia import Nvidia, read_nvidia
from stoker.records import Disk, Machine

DMI = "/sys/class/dmi/id"
MODPROBE_FOLDERS = ("/etc/modprobe.d", "/usr/lib/modprobe.d")
ABOUT_NVIDIA = re.compile(r"^\s*([a-z]+\s.*\bnvidia.*)$", re.MULTILINE)


def read_machine(box: Box, state_folder: str, read_gpus: Callable[[], Nvidia] = read_nvidia) -> Machine:
    """Returns what is known of the machine; whatever it does not tell is None."""
    host, kernel, arch = box.uname()
    nvidia = read_gpus()
    disk = box.disk_bytes(state_folder)
    return Machine(
        hostname=host,
        arch=arch,
        kernel=kernel,
        cpu_model=_read_cpu_model(box),
        cpu_count=box.cpu_count(),
        memory=read_memory(box),
        gpus=nvidia.gpus,
        driver=nvidia.driver,
        cuda=nvidia.cuda,
        disk=Disk(state_folder, *disk) if disk else None,
        engines={"llamacpp": read_package_version("xllamacpp")},
        unified_memory=nvidia.unified_memory,
        os=_read_os(box),
        product=_read_line(box, f"{DMI}/product_name"),
        firmware=_read_line(box, f"{DMI}/bios_version"),
        driver_options=_read_driver_options(box),
        ports=read_ports(box),
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


def _read_os(box: Box) -> str | None:
    """The distribution, and the maker's own system on top of it where there is one (DGX OS)."""
    maker = box.read("/etc/dgx-release")
    version = _value("DGX_OTA_VERSION", maker) or _value("DGX_SWBUILD_VERSION", maker)
    names = (_value("PRETTY_NAME", box.read("/etc/os-release")), _value("DGX_PRETTY_NAME", maker), version)
    return ", ".join(name for name in names if name) or None


def _value(name: str, text: str | None) -> str | None:
    found = re.findall(rf"^{name}=[\"']?(.*?)[\"']?$", text or "", re.MULTILINE)
    return found[-1] if found and found[-1] else None  # an update appends to the file, and the last one counts


def _read_line(box: Box, path: str) -> str | None:
    return (box.read(path) or "").strip() or None


def _read_driver_options(box: Box) -> dict[str, tuple[str, ...]]:
    """One of these files was seen to halve what CUDA sees of a GB10's memory (rule cuda-total-62gb-modprobe)."""
    files = {name: f"{folder}/{name}" for folder in reversed(MODPROBE_FOLDERS) for name in box.names(folder)}
    found: dict[str, tuple[str, ...]] = {}
    for name, path in sorted(files.items()):
        lines = ABOUT_NVIDIA.findall(box.read(path) or "") if name.endswith(".conf") else []
        if lines:
            found[path] = tuple(" ".join(line.split()) for line in lines)
    return found
