"""Waiting for memory, with what the kernel says given as a sequence of values."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from stoker.records import GIB, MIB, Handle, Memory, MemoryHolder, say_bytes
from stoker.supervise.guard import (
    SETTLED_SLACK_BYTES,
    await_room,
    await_settled,
    can_ever_fit,
    describe_shortage,
    missing_bytes,
)
from support import make_memory

LONG_S, NO_TIME_S = 60.0, 0.0
FLOOR = GIB
amounts = st.integers(0, 2**40)


class Readings:
    """Gives one value after the other, the last one for ever; counts how often it was asked."""

    def __init__(self, *available_gib: float) -> None:
        self.values = [make_memory(int(gib * GIB)) for gib in available_gib]
        self.asked = 0

    def __call__(self) -> Memory:
        self.asked += 1
        return self.values[min(self.asked, len(self.values)) - 1]


def wait_for_room(need_gib: int, limit_s: float, readings: Callable[[], Memory]) -> bool:
    return asyncio.run(await_room(need_gib * GIB, FLOOR, limit_s, readings))


def test_room_that_is_there_is_not_waited_for() -> None:
    readings = Readings(5.0)
    assert wait_for_room(4, NO_TIME_S, readings)
    assert readings.asked == 1


def test_the_floor_is_kept_for_the_system() -> None:
    assert not wait_for_room(4, NO_TIME_S, Readings(4.99))
    assert wait_for_room(4, NO_TIME_S, Readings(5.0))


def test_room_is_waited_for_until_it_comes() -> None:
    readings = Readings(1, 3, 8)
    assert wait_for_room(4, LONG_S, readings)
    assert readings.asked == 3


def test_room_that_never_comes_is_given_up_at_the_limit() -> None:
    begun = time.monotonic()
    assert not wait_for_room(4, 0.3, Readings(1))
    assert 0.3 <= time.monotonic() - begun < 5


def test_what_can_never_fit_is_not_waited_for() -> None:
    readings = Readings(1)
    assert not wait_for_room(16, LONG_S, readings)
    assert readings.asked == 1
    assert not can_ever_fit(16 * GIB, FLOOR, readings.values[0])
    assert can_ever_fit(15 * GIB, FLOOR, readings.values[0])


def test_a_shortage_names_what_is_needed_what_is_there_and_who_holds_most() -> None:
    holders = [MemoryHolder(17, "python3", 3 * GIB), MemoryHolder(9, "chrome", 700 * MIB)]
    text = describe_shortage(4 * GIB, 512 * MIB, make_memory(2 * GIB), holders)
    assert text == (
        "4.0 GiB needed and 512 MiB kept for the system, 2.0 GiB of 16.0 GiB available;"
        " most is held by: python3 (pid 17) 3.0 GiB, chrome (pid 9) 700 MiB"
    )
    assert describe_shortage(GIB, 0, make_memory(0), []).endswith("most is held by: no large process of yours")


def test_amounts_are_said_as_people_read_them() -> None:
    assert [say_bytes(count) for count in (0, 5 * MIB, GIB - 1, GIB, 70 * GIB)] == [
        "0 MiB", "5 MiB", "1024 MiB", "1.0 GiB", "70.0 GiB",
    ]  # fmt: skip


def settle(target_gib: float, limit_s: float, readings: Callable[[], Memory]) -> int:
    return asyncio.run(await_settled(lambda memory: int(target_gib * GIB) - memory.available_bytes, limit_s, readings))


def test_memory_that_is_back_is_settled_at_once() -> None:
    readings = Readings(10)
    assert settle(10, NO_TIME_S, readings) == 0
    assert readings.asked == 1


def test_settling_waits_until_the_memory_itself_is_back() -> None:
    readings = Readings(2, 5, 10)
    assert settle(10, LONG_S, readings) == 0
    assert readings.asked == 3


def test_what_is_missing_at_the_limit_is_told_in_bytes() -> None:
    assert settle(10, 0.3, Readings(2, 7)) == 3 * GIB


def missing_gib(available_gib: float, others_gib: float | None = None, last_gib: float = 60, claim_gib: float = 40) -> float:
    """What is missing after an engine was started where 100 were available and processes held 8."""
    handle = Handle(1, "m", None, None, "boot", 1, 100 * GIB, int(claim_gib * GIB), anonymous_before_bytes=8 * GIB)
    anonymous_bytes = None if others_gib is None else int(others_gib * GIB)
    memory = msgspec.structs.replace(make_memory(int(available_gib * GIB)), anonymous_bytes=anonymous_bytes)
    return round(missing_bytes(memory, handle, int(last_gib * GIB)) / GIB, 3)


def test_what_processes_took_since_explains_as_much_of_what_is_missing() -> None:
    assert missing_gib(60, 8) == 36, "all but the slack of a tenth"
    assert missing_gib(96, 8) == 0
    assert missing_gib(60, 28) == 16
    assert missing_gib(60, 44) == 0
    assert missing_gib(60, 2) == 36, "what others freed is not the engine's"
    assert missing_gib(60, None) == 36, "nobody tells what others hold"


def test_what_others_took_in_no_process_is_not_waited_for() -> None:
    assert missing_gib(86, 8, last_gib=50) == 0, "10 were gone beside its 40 before it ended"
    assert missing_gib(80, 8, last_gib=50) == 6
    assert missing_gib(86, 8, last_gib=70) == 10, "what others freed is not the engine's"


def test_a_small_engine_has_the_slack_of_its_machine() -> None:
    handle = Handle(1, "m", None, None, "boot", 1, 100 * GIB, 2 * GIB)
    for total_gib, missing in ((128, 0.72), (16, 1.75)):
        memory = make_memory(98 * GIB, total_gib * GIB)
        assert round(missing_bytes(memory, handle, 98 * GIB) / GIB, 2) == missing


def test_an_engine_that_died_while_loading_held_all_that_is_gone() -> None:
    assert missing_gib(40, 8, last_gib=40, claim_gib=0) == 54


@given(amounts, amounts, amounts, amounts)
def test_the_mark_is_never_more_than_was_there_before_the_start(before: int, claim: int, last: int, now: int) -> None:
    handle = Handle(1, "m", None, None, "boot", 1, before, claim)
    assert missing_bytes(make_memory(now), handle, last) <= before - SETTLED_SLACK_BYTES - now
