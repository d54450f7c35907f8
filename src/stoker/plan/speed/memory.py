"""What is known of a machine's memory bandwidth. Pure."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

import msgspec

from stoker.records import Machine, Record

FILE = Path(__file__).parent / "data" / "machines.toml"
GIGA = 1e9


class MemoryOf(Record, frozen=True):
    """A GPU's nominal bandwidth, who says so, and whether the fit is of such a machine."""

    gpu: str
    bandwidth_gb_s: float
    source: str
    fitted: bool = False

    @property
    def bandwidth(self) -> float:
        """Bytes a second."""
        return self.bandwidth_gb_s * GIGA


@cache
def known_memory() -> tuple[MemoryOf, ...]:
    """Returns what is known, the machine of the fit first."""
    return tuple(msgspec.convert(row, MemoryOf) for row in tomllib.loads(FILE.read_text())["machine"])


def memory_of(machine: Machine) -> MemoryOf | None:
    """Returns what is known of a machine's memory; None where it has no GPU that is listed."""
    name = machine.gpus[0].name.lower() if machine.gpus else ""
    return next((memory for memory in known_memory() if memory.gpu.lower() in name), None)
