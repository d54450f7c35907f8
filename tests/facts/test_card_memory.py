"""The memory of a graphics card that has its own: read again and again, and unknown where there is none."""

from __future__ import annotations

import os

import pynvml

from recorded_nvml import MIB, RecordedNvml, recorded_nvml
from stoker.facts.machine.card import CardReader
from stoker.records import CardMemory, GpuProcess


class LateDriver(RecordedNvml):
    """A driver that is loaded only after it was first asked for."""

    loaded = False

    def nvmlInit(self) -> None:  # noqa: N802
        if not self.loaded:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
        super().nvmlInit()


def test_an_h200_tells_what_is_free_and_that_nobody_holds_the_rest() -> None:
    nvml = recorded_nvml("h200")
    reader = CardReader(nvml)
    assert reader.read() == CardMemory("NVIDIA H200", 143771 * MIB, 143771 * MIB)
    nvml.devices[0].find("fb_memory_usage/used").text = "3771 MiB"  # type: ignore[union-attr]
    found = reader.read()
    assert found is not None and found.free_bytes == 140_000 * MIB
    assert nvml.open == 1, "the library stays open"
    reader.close()
    assert nvml.open == 0


def test_who_holds_a_card_is_told_with_it() -> None:
    found = CardReader(recorded_nvml("pc-ada")).read()
    assert found is not None
    assert (found.total_bytes, found.free_bytes) == (24564 * MIB, (24564 - 20145) * MIB)
    held = [process.used_bytes or 0 for process in found.processes]
    assert held == sorted(held, reverse=True)


def test_a_gb10_has_no_memory_of_its_own_and_a_lost_gpu_tells_of_none() -> None:
    assert CardReader(recorded_nvml("gb10-128gb")).read() is None
    assert CardReader(recorded_nvml("h200", lost=True)).read() is None


def test_a_driver_that_comes_later_is_found() -> None:
    recorded = recorded_nvml("h200")
    nvml = LateDriver.__new__(LateDriver)
    nvml.__dict__.update(recorded.__dict__)
    reader = CardReader(nvml)
    assert reader.read() is None
    nvml.loaded = True
    assert reader.read() is not None


def test_what_a_dead_process_had_is_not_held_but_not_back_yet() -> None:
    lives, dead = GpuProcess(0, os.getpid(), "python", 5 * MIB), GpuProcess(0, 7, None, 9 * MIB)
    assert CardMemory("c", 100, 50, (lives, dead)).held_bytes == 5 * MIB
    assert CardMemory("c", 100, 50, (lives, GpuProcess(0, 8, "other", None))).held_bytes is None
    assert CardMemory("c", 100, 50).held_bytes == 0
