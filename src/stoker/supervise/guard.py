"""Waits for memory: before a start until there is room, after a stop until what was held is back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from stoker.records import MIB, Handle, Memory, MemoryHolder, say_bytes

POLL_S = 0.25
DROP_CACHES = Path("/proc/sys/vm/drop_caches")
# Other programs live on the machine too: a stop counts as settled when this much of the engine's claim is back.
SETTLED_SHARE = 0.9
SETTLED_SLACK_BYTES = 256 * MIB
# What other programs' drivers hold for them is in no process: a stop beside four starting engines, on a host of 251 GiB,
# waited 120 s for 0.4 GiB, most likely of it. A real loss of less shows over several starts (memory-not-given-back).
UNTOLD_SHARE = 0.01

ReadMemory = Callable[[], Memory]


class MoreRoom(Protocol):
    """Room that is asked for elsewhere than in the machine's memory."""

    async def is_there(self) -> bool:
        """Tells whether there is as much now."""

    def can_ever_be(self) -> bool:
        """Tells whether there could be as much."""


def describe_shortage(need_bytes: int, floor_bytes: int, memory: Memory, holders: list[MemoryHolder]) -> str:
    """Returns what is needed, what is free and who holds most."""
    return (
        f"{say_bytes(need_bytes)} needed and {say_bytes(floor_bytes)} kept for the system,"
        f" {say_bytes(memory.available_bytes)} of {say_bytes(memory.total_bytes)} available"
        f"; most is held by: {say_holders(holders)}"
    )


def say_holders(holders: list[MemoryHolder]) -> str:
    """Returns who holds how much."""
    held = ", ".join(f"{holder.name} (pid {holder.pid}) {say_bytes(holder.resident_bytes)}" for holder in holders)
    return held or "no large process of yours"


def can_ever_fit(need_bytes: int, floor_bytes: int, memory: Memory) -> bool:
    """Tells whether the engine would fit in an empty machine."""
    return need_bytes + floor_bytes <= memory.total_bytes


def drop_page_cache() -> bool:
    """Asks the kernel to forget all clean pages that it holds of files; False where this user may not ask."""
    try:
        DROP_CACHES.write_text("1\n")
    except OSError:
        return False
    return True


async def await_room(
    need_bytes: int, floor_bytes: int, limit_s: float, read_memory: ReadMemory, more: MoreRoom | None = None
) -> bool:
    """Waits until `need_bytes` are available above the floor, and `more` is there too.

    False where that does not happen in time, or ever.
    """
    end = time.monotonic() + limit_s
    while True:
        has_more = more is None or await more.is_there()
        memory = read_memory()
        if has_more and memory.available_bytes >= need_bytes + floor_bytes:
            return True
        can_ever_be = can_ever_fit(need_bytes, floor_bytes, memory) and (more is None or more.can_ever_be())
        if time.monotonic() >= end or not can_ever_be:
            return False
        await asyncio.sleep(POLL_S)


async def await_settled(missing: Callable[[Memory], int], limit_s: float, read_memory: ReadMemory) -> int:
    """Waits until nothing is missing; returns the bytes that still are when the limit ran out, else 0."""
    end = time.monotonic() + limit_s
    while (left_bytes := missing(read_memory())) > 0:
        if time.monotonic() >= end:
            return left_bytes
        await asyncio.sleep(POLL_S)
    return 0


def missing_bytes(memory: Memory, handle: Handle, last_bytes: int) -> int:
    """Returns how much of the memory of an engine that has ended is not back; 0 or less is nothing.

    `handle` tells what was available before its start, and how much less once it was up (0: it never was, and is taken to
    have held all that is gone). `last_bytes` were available shortly before it ended: what others took until then is in it,
    their drivers' memory too, which no process is seen to hold. No process of it lives, so what processes hold more than
    before its start is others' as well, where the kernel tells it. The lowest mark counts, since the gate looks again.
    """
    before_bytes = handle.memory_before_bytes
    claim_bytes = handle.memory_claim_bytes or max(0, before_bytes - last_bytes)
    marks = [before_bytes, last_bytes + claim_bytes]
    if memory.anonymous_bytes is not None and handle.anonymous_before_bytes is not None:
        marks.append(before_bytes - max(0, memory.anonymous_bytes - handle.anonymous_before_bytes))
    spare_bytes = max(slack_bytes(claim_bytes), int(memory.total_bytes * UNTOLD_SHARE))
    return min(marks) - spare_bytes - memory.available_bytes


def slack_bytes(claim_bytes: int) -> int:
    """Returns how much of what an engine took need not be back, since other programs live beside it."""
    return max(SETTLED_SLACK_BYTES, int(claim_bytes * (1 - SETTLED_SHARE)))
