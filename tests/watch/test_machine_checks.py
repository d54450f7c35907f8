"""Memory, GPUs and disks."""

from __future__ import annotations

import msgspec
import pytest

from stoker.records import GIB, MIB, Gpu, Memory, say_bytes
from stoker.watch.disks import DisksCheck
from stoker.watch.gpus import GpusCheck
from stoker.watch.memory import MemoryCheck, judge_holding

FLOOR = 2 * GIB
MEMORY = Memory(128 * GIB, 60 * GIB, 40 * GIB, 20 * GIB, 16 * GIB, 16 * GIB, 0.0)
GPU = Gpu(
    "NVIDIA GB10", "12.1", None, None, 47.0, None, 2400, 3003, None, 96, 70, slowed_by=(), busy_clock_mhz=2400
)  # fmt: skip


def memory(available: float, **more: object) -> Memory:
    """A memory with so many GiB available."""
    return msgspec.structs.replace(MEMORY, available_bytes=int(available * GIB), **more)


def said(check: MemoryCheck, alert: str, *looks: tuple[float, Memory], waits: bool = False) -> str | None:
    """What is said of an alert after the last of some looks."""
    found = [check.look(at_s, seen, waits)[alert, ""] for at_s, seen in looks]
    return found[-1]


def test_memory_below_the_floor_is_said_with_both() -> None:
    assert said(MemoryCheck(FLOOR), "memory-floor", (0, memory(1.5))) == "1.5 GiB are available, 2.0 GiB are to stay free"
    assert said(MemoryCheck(FLOOR), "memory-floor", (0, memory(2.0))) is None


def test_memory_that_goes_tells_when_it_is_gone() -> None:
    looks = [(minute * 60.0, memory(60 - minute)) for minute in range(31)]
    why = said(MemoryCheck(FLOOR), "memory-trend", *looks)
    assert why is not None
    assert "1.0 GiB go each minute: the floor is reached in 28 min 0 s" in why


def test_memory_that_goes_slowly_is_no_alarm() -> None:
    looks = [(minute * 60.0, memory(60 - minute / 100)) for minute in range(31)]
    assert said(MemoryCheck(FLOOR), "memory-trend", *looks) is None


def test_a_model_that_was_loaded_is_no_trend() -> None:
    """Half an hour later nothing goes any more."""
    looks = [(minute * 60.0, memory(100 if minute < 5 else 20)) for minute in range(40)]
    assert said(MemoryCheck(FLOOR), "memory-trend", *looks) is None


def test_a_gap_in_watching_begins_the_line_anew() -> None:
    looks = [(0.0, memory(100)), *((7200 + minute * 60.0, memory(20)) for minute in range(31))]
    assert said(MemoryCheck(FLOOR), "memory-trend", *looks) is None


def test_pressure_is_said_where_the_kernel_tells_it() -> None:
    assert "45 %" in str(said(MemoryCheck(FLOOR), "memory-stalled", (0, memory(1, full_stall_pct=45.0))))
    assert said(MemoryCheck(FLOOR), "memory-stalled", (0, memory(1, full_stall_pct=None))) is None


def test_swap_that_grows_is_told_from_swap_that_is_used() -> None:
    check = MemoryCheck(FLOOR)
    used = [(minute * 60.0, memory(9, swap_free_bytes=6 * GIB)) for minute in range(10)]
    assert said(check, "swap-grows", *used) is None
    assert "2.0 GiB more" in str(said(check, "swap-grows", (660, memory(9, swap_free_bytes=4 * GIB))))


def test_the_page_cache_is_in_the_way_of_a_start_alone() -> None:
    full = memory(80, page_cache_bytes=70 * GIB)
    assert said(MemoryCheck(FLOOR), "page-cache-in-the-way", (0, full)) is None
    assert "holds 70.0 GiB" in str(said(MemoryCheck(FLOOR), "page-cache-in-the-way", (0, full), waits=True))


@pytest.mark.parametrize(
    ("found", "is_said"), [((120, 118, 116, 114), True), ((120, 118, 119, 114), False), ((120, 119.9, 119.8, 119.7), False)]
)
def test_starts_that_find_less_each_time(found: tuple[float, ...], is_said: bool) -> None:
    check = MemoryCheck(FLOOR)
    for launch, before in enumerate(found, start=1):
        for _ in range(3):  # each launch is looked at again and again
            looked = check.look_at_start("coder", launch, int(before * GIB), 128 * GIB)
    assert bool(looked["memory-not-given-back", "coder"]) is is_said


@pytest.mark.parametrize(
    ("held", "planned", "is_said"),
    [
        (1_900, 249, True),
        (500, 249, False),
        (20_000, 17_000, False),
        (22_000, 17_000, True),
        (None, 249, False),
        (900, 0, False),
    ],
)
def test_a_service_that_holds_clearly_more_than_its_plan_counted(held: int | None, planned: int, is_said: bool) -> None:
    """A quarter more and 256 MiB; what is unknown says nothing."""
    said = judge_holding(None if held is None else held * MIB, planned * MIB)
    assert (said is not None) is is_said
    assert said is None or (f"{say_bytes(planned * MIB)}" in said and "its plan counted" in said)


def gpu(**more: object) -> Gpu:
    """A GPU."""
    return msgspec.structs.replace(GPU, **more)


def test_a_clock_that_is_stuck_is_told_from_one_that_is_idle_or_slowed() -> None:
    check = GpusCheck()
    stuck = check.look(0, (gpu(busy_clock_mhz=799, power_w=19.5),))["gpu-clock-stuck", "0"]
    assert stuck == "it is busy at 799 MHz of 3003, and its driver gives no reason"
    assert check.look(0, (gpu(busy_clock_mhz=2236),))["gpu-clock-stuck", "0"] is None
    assert check.look(0, (gpu(busy_clock_mhz=799, slowed_by=("heat (software)",)),))["gpu-clock-stuck", "0"] is None
    assert ("gpu-clock-stuck", "0") not in check.look(0, (gpu(busy_clock_mhz=None),))


def test_heat_and_power_are_what_the_driver_says() -> None:
    looked = GpusCheck().look(0, (gpu(slowed_by=("heat (hardware)", "the power limit"), temperature_c=87),))
    assert looked["gpu-slowed-by-heat", "0"] == "its driver slows it for heat (hardware) at 87 C"
    assert looked["gpu-slowed-by-power", "0"] == "its driver slows it for the power limit; it draws 47 W"


def test_a_driver_that_tells_nothing_is_not_judged() -> None:
    silent = Gpu("NVIDIA GB10", None, None, None, None, None, None)
    assert GpusCheck().look(0, (silent,)) == {}


def test_work_that_draws_nothing_is_none() -> None:
    check = GpusCheck()
    for minute in range(20):
        assert check.look(minute * 60, (gpu(power_w=47.0 + minute % 5),))["gpu-busy-without-power", "0"] is None
    assert "draws 19 W; 49 W are usual" in str(check.look(1260, (gpu(power_w=19.0),))["gpu-busy-without-power", "0"])
    assert check.look(1320, (gpu(power_w=12.0, utilisation_pct=3),))["gpu-busy-without-power", "0"] is None


def test_disks_that_are_full_or_will_be() -> None:
    check = DisksCheck()
    assert check.look(0, [("state", 1 * GIB, 100 * GIB)])["disk-full", "state"] == "1.0 GiB of 100.0 GiB are free"
    assert check.look(0, [("models", 40 * GIB, 4000 * GIB)])["disk-full", "models"] is not None
    assert check.look(0, [("spare", 400 * GIB, 4000 * GIB)])["disk-full", "spare"] is None
    for hour in range(7):
        looked = check.look(hour * 3600, [("logs", (100 - 5 * hour) * GIB, 200 * GIB)])
    assert "none is in 840 min 0 s" in str(looked["disk-trend", "logs"])
