"""The tools of services whose engines are never asked for anything."""

from __future__ import annotations

from pathlib import Path

from small_machine import NoGate, SmallMachine
from stoker.config import LimitsConfig, Paths
from stoker.records import GIB, Endpoint, Proof
from stoker.supervise.hands import Tools

FLOOR_BYTES = GIB


async def never(*words: object) -> bool:
    """Nothing is asked of an engine here."""
    raise AssertionError


async def prove(endpoint: Endpoint) -> Proof:
    """Nothing is asked of an engine here."""
    raise AssertionError


async def no_counters(endpoint: Endpoint) -> tuple[str, ...] | None:
    """Nothing is asked of an engine here."""
    raise AssertionError


def make_tools(folder: Path, machine: SmallMachine) -> Tools:
    """Returns tools that see a small machine."""
    return Tools(
        paths=Paths(state=folder, config=folder / "stoker.toml"), limits=LimitsConfig(memory_floor_bytes=FLOOR_BYTES),
        instance="who", engine_key="k", read_memory=machine.read, is_healthy=never, prove=prove, gate=NoGate(),
        in_flight=lambda service: 0, heard_at=lambda service: 0.0, read_counters=no_counters,
        keep_start=lambda start: None, cuda_counts_cache=lambda: False, has_gpu=lambda: False,
    )  # fmt: skip
