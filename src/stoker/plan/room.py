"""Says what has to stop before a service has the memory it needs. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from stoker.records import Record


class Claim(Record, frozen=True):
    """A service that runs, and the memory that comes back when it stops: measured, predicted, or declared by its owner."""

    service: str
    held_bytes: int


def to_stop(need_bytes: int, available_bytes: int, running: Sequence[Claim]) -> tuple[str, ...] | None:
    """Returns the fewest services whose end makes room, the largest first; None where not even all of them are enough."""
    stopped: list[str] = []
    for claim in sorted(running, key=lambda claim: (-claim.held_bytes, claim.service)):
        if available_bytes >= need_bytes:
            break
        available_bytes += claim.held_bytes
        stopped.append(claim.service)
    return tuple(stopped) if available_bytes >= need_bytes else None


def together_share(need_bytes: int, running: Sequence[Claim], total_bytes: int) -> float:
    """Returns what a service and those that run would take together, as a share of the machine's memory."""
    return (need_bytes + sum(claim.held_bytes for claim in running)) / total_bytes
