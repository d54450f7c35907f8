"""Says what has to stop before a service has the memory it needs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from stoker.records import Record


class Claim(Record, frozen=True):
    """A service that runs, and the memory that comes back when it stops: measured, predicted, or declared by its owner.

    `card_bytes` come back on a graphics card that has memory of its own.
    """

    service: str
    held_bytes: int
    card_bytes: int = 0


class OnCard(NamedTuple):
    """What a service needs of a card's own memory, and what is free there."""

    need_bytes: int
    free_bytes: int


def to_stop(
    need_bytes: int, available_bytes: int, running: Sequence[Claim], card: OnCard | None = None
) -> tuple[str, ...] | None:
    """Returns the fewest services whose end makes room, the largest first; None where not even all of them are enough.

    Where a card's memory is short too, those go first that hold most of it.
    """
    first: list[Claim] | None = []
    if card is not None:
        first = _until(card.need_bytes, card.free_bytes, running, lambda claim: claim.card_bytes)
    if first is None:
        return None
    available_bytes += sum(claim.held_bytes for claim in first)
    left = [claim for claim in running if claim not in first]
    more = _until(need_bytes, available_bytes, left, lambda claim: claim.held_bytes)
    return None if more is None else tuple(claim.service for claim in (*first, *more))


def _until(need_bytes: int, free_bytes: int, running: Sequence[Claim], held: Callable[[Claim], int]) -> list[Claim] | None:
    stopped: list[Claim] = []
    for claim in sorted(running, key=lambda claim: (-held(claim), claim.service)):
        if free_bytes >= need_bytes:
            break
        free_bytes += held(claim)
        stopped.append(claim)
    return stopped if free_bytes >= need_bytes else None


def together_share(need_bytes: int, running: Sequence[Claim], total_bytes: int) -> float:
    """Returns what a service and those that run would take together, as a share of the machine's memory."""
    return (need_bytes + sum(claim.held_bytes for claim in running)) / total_bytes
