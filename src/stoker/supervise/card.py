"""The memory of a graphics card that has its own: whether a start finds it free there, and whether it is back after a stop.

The driver is asked in a thread, since it may take its time. Where it does not tell, nothing is waited for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from stoker.records import CardMemory, GpuProcess, Handle, say_bytes
from stoker.supervise.guard import POLL_S, slack_bytes

HOLDERS = 5
ReadCard = Callable[[], CardMemory | None]


class CardRoom:
    """What a start asks of the card's memory; `seen` is what was found there last."""

    def __init__(self, need_bytes: int, read_card: ReadCard, note: Callable[[CardMemory | None], None]) -> None:
        self.need_bytes = need_bytes
        self.seen: CardMemory | None = None
        self._read_card, self._note = read_card, note

    async def is_there(self) -> bool:
        """Tells whether as much is free now."""
        if self.need_bytes:
            self.seen = await asyncio.to_thread(self._read_card)
            self._note(self.seen)
        return not self.is_short

    @property
    def is_short(self) -> bool:
        """Tells whether too little was free at the last look."""
        return self.seen is not None and self.seen.free_bytes < self.need_bytes

    def can_ever_be(self) -> bool:
        """Tells whether an empty card would have as much."""
        return self.seen is None or self.need_bytes <= self.seen.total_bytes


def say_card_free(need_bytes: int, card: CardMemory | None) -> str:
    """Returns what is to be said of the card where a start goes on; nothing where nothing is asked of it."""
    if not need_bytes:
        return ""
    if card is None:
        return f"; the driver does not tell whether {say_bytes(need_bytes)} are free on the card"
    return f", and {say_bytes(need_bytes)} of the {say_bytes(card.free_bytes)} that are free on the card ({card.name})"


def describe_card(need_bytes: int, card: CardMemory) -> str:
    """Returns what is needed of the card, what is free there, and who holds most."""
    return (
        f"{say_bytes(need_bytes)} needed on the card ({card.name}), {say_bytes(card.free_bytes)} of"
        f" {say_bytes(card.total_bytes)} free there; most is held there by: {say_card_holders(card)}"
    )


def say_card_holders(card: CardMemory) -> str:
    """Returns who holds how much of the card, as far as the driver tells."""
    if not card.processes:
        return "nobody of whom the driver tells"
    more = len(card.processes) - HOLDERS
    told = ", ".join(map(_say_process, card.processes[:HOLDERS]))
    return told + (f" and {more} more" if more > 0 else "")


def _say_process(process: GpuProcess) -> str:
    held = "(how much, the driver does not tell)" if process.used_bytes is None else say_bytes(process.used_bytes)
    return f"{process.name or 'a process that is not seen here'} (pid {process.pid}) {held}"


def missing_on_card(card: CardMemory, handle: Handle, last_free_bytes: int | None) -> int:
    """Returns how much of the card's memory is not back from an engine that has ended; 0 or less is nothing.

    As `guard.missing_bytes` reckons for the machine's memory: others may have taken some meanwhile. What other processes
    hold more than before the start explains as much where the driver tells it; what was free shortly before the end does
    where it does not tell, as of processes in other containers. The lower mark counts, since the gate looks again anyway.
    """
    before_bytes = handle.card_before_bytes
    if before_bytes is None:
        return 0
    last_bytes = before_bytes if last_free_bytes is None else last_free_bytes
    # One that died unmeasured held all that is gone.
    claim_bytes = handle.card_claim_bytes or max(0, before_bytes - last_bytes)
    marks = [before_bytes, last_bytes + claim_bytes]
    held_bytes, held_before_bytes = card.held_bytes, handle.card_held_before_bytes
    if held_bytes is not None and held_before_bytes is not None:
        marks.append(before_bytes - max(0, held_bytes - held_before_bytes))
    return min(marks) - slack_bytes(claim_bytes) - card.free_bytes


async def await_card_settled(
    handle: Handle, last_free_bytes: int | None, limit_s: float, read_card: ReadCard
) -> tuple[int, CardMemory | None]:
    """Waits until nothing of the card's memory is missing; returns what still is when the limit ran out, and the card."""
    if handle.card_before_bytes is None:
        return 0, None
    end = time.monotonic() + limit_s
    while True:
        card = await asyncio.to_thread(read_card)
        left_bytes = 0 if card is None else missing_on_card(card, handle, last_free_bytes)
        if left_bytes <= 0 or time.monotonic() >= end:
            return max(0, left_bytes), card
        await asyncio.sleep(POLL_S)
