"""Reads what a plan does not need of the machine: disks, container engines, programs, ports, and who holds memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from stoker.box import Box
from stoker.errors import StokerError
from stoker.facts.machine.containers import NAMES, read_container_engine
from stoker.facts.machine.disk import read_disks
from stoker.facts.machine.memory import read_holders
from stoker.facts.machine.nvidia import read_gpu_processes
from stoker.facts.machine.ports import read_listeners
from stoker.facts.machine.programs import PROGRAMS, read_program
from stoker.facts.machine.read_rate import measure_folder
from stoker.records import Disk, GpuProcess, MachineDetails

HOLDERS = 8


def read_details(
    box: Box, folders: Iterable[str], read_processes: Callable[[], tuple[GpuProcess, ...]] = read_gpu_processes
) -> MachineDetails:
    """Returns the details; the programs that have to be asked are asked at the same time."""
    with ThreadPoolExecutor(len(NAMES) + len(PROGRAMS)) as pool:
        engines = [pool.submit(read_container_engine, box, name) for name in NAMES]
        programs = [pool.submit(read_program, box, name) for name in PROGRAMS]
        return MachineDetails(
            disks=read_disks(box, folders),
            listeners=read_listeners(),
            holders=tuple(read_holders(HOLDERS)),
            gpu_processes=read_processes(),
            container_engines=tuple(found for asked in engines if (found := asked.result())),
            programs=tuple(program for search in programs if (program := search.result())),
        )


def measure_disks(disks: Sequence[Disk]) -> tuple[Disk, ...]:
    """Returns the disks with how fast each reads, one after the other; where that fails, why."""
    return tuple(_measure(disk) for disk in disks)


def _measure(disk: Disk) -> Disk:
    try:
        rate = measure_folder([Path(folder) for folder in disk.holds], disk.free_bytes)
    except StokerError as problem:
        return msgspec.structs.replace(disk, not_measured=f"{problem.what}{f': {problem.why}' if problem.why else ''}")
    return msgspec.structs.replace(disk, read_rate=rate)
