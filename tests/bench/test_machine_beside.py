"""The machine beside a measurement, by value and from recorded boxes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from recorded_nvml import recorded_nvml
from stoker.bench.machine import MachineWatch, Mark, Sample, join_seen, sum_up
from stoker.bench.processes import engine_seconds, find_listener
from stoker.box import LocalBox, RecordedBox
from stoker.facts.machine.nvidia import watching_gpus
from stoker.records import GIB, Gpu
from support import BOXES

LISTEN = "import socket; one = socket.create_server(('127.0.0.1', 0)); print(one.getsockname()[1], flush=True); input()"


def gpu(**changes: object) -> Gpu:
    """Returns a GPU at work."""
    facts = {"power_w": 60.0, "busy_clock_mhz": 2400, "temperature_c": 70, "slowed_by": ()}
    return Gpu("GB10", "12.1", None, None, power_limit_w=None, sm_clock_mhz=2400, **{**facts, **changes})  # type: ignore[arg-type]


def test_the_lowest_memory_the_mean_power_and_the_reasons_for_slowness_are_kept() -> None:
    hot = gpu(power_w=80.0, busy_clock_mhz=1800, temperature_c=88, slowed_by=("heat (hardware)", "idle"))
    samples = [
        Sample(1.0, 30 * GIB, (gpu(),), 55.0), Sample(2.0, 20 * GIB, (hot,), 60.0),
        Sample(3.0, None, (gpu(power_w=None, busy_clock_mhz=None),), None),
    ]  # fmt: skip
    seen = sum_up(samples, Mark(0.0, 1000, 5.0, 1.0), Mark(4.0, 41_000, 11.0, 1.2))
    assert (seen.available_low_bytes, seen.power_mean_w, seen.gpu_clock_low_hz) == (20 * GIB, 70.0, 1.8e9)
    assert (seen.temperature_high_c, seen.throttled) == (88, "heat (hardware)")
    assert seen.memory_pressure == pytest.approx(0.01)
    assert seen.engine_cores == 1.5
    assert seen.client_cores == pytest.approx(0.05)


def test_what_a_machine_does_not_tell_is_unknown() -> None:
    seen = sum_up([], Mark(0.0, None, None, 0.0), Mark(1.0, None, None, 0.0))
    assert (seen.available_low_bytes, seen.memory_pressure, seen.power_mean_w, seen.engine_cores) == (None,) * 4
    assert seen.throttled == ""


def test_several_repeats_are_as_bad_as_the_worst() -> None:
    good = sum_up([Sample(1.0, 9, (gpu(),), None)], Mark(0.0, 0, 0.0, 0.0), Mark(1.0, 0, 1.0, 0.0))
    bad = sum_up(
        [Sample(1.0, 5, (gpu(slowed_by=("the power limit",)),), None)], Mark(0.0, 0, 0.0, 0.0), Mark(1.0, 0, 2.0, 0.0)
    )
    both = join_seen([good, bad])
    assert both is not None
    assert (both.available_low_bytes, both.throttled, both.engine_cores) == (5, "the power limit", 1.5)
    assert join_seen([]) is None


def test_a_recorded_gb10_is_read_again_and_again() -> None:
    with watching_gpus(recorded_nvml("gb10-128gb")) as read:
        assert [one.name for one in read()] == [one.name for one in read()] == ["NVIDIA GB10"]


def test_a_watch_of_a_box_without_a_gpu_sees_its_memory() -> None:
    watch = MachineWatch(RecordedBox(BOXES / "pc-24gb"), lambda: None)
    begin = watch.mark()
    seen = watch.since(begin)
    watch.close()
    assert seen.available_low_bytes
    assert (seen.power_mean_w, seen.engine_cores) == (None, None)


def test_the_engines_processor_time_is_that_of_who_listens() -> None:
    words = [sys.executable, "-c", LISTEN]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        assert find_listener(LocalBox(), port) == process.pid
        assert (engine_seconds(LocalBox(), port)() or 0.0) > 0
        process.communicate("\n")
    assert engine_seconds(LocalBox(), port)() is None


def test_a_box_whose_tables_cannot_be_read_knows_no_listener(tmp_path: Path) -> None:
    assert find_listener(RecordedBox(tmp_path), 8000) is None
