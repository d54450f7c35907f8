"""Makes the dashboard's cards of what is known of services and machine. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stoker.door_tables import model_of
from stoker.plan.deeds import Standing, deeds_of
from stoker.records import KeptVerification, Memory, ServiceView, State, Wish
from stoker.records.dashboard import Card, Deeds, MemoryPart, Pace, VerdictView

NEVER = "it stands in stoker.toml and was not started yet"
DEMO_WHY = "it comes with Stoker: 8 MB, and nothing to download"


def new_card(
    wish: Wish, since: float, switching: str, expected_s: float | None, why: str = NEVER, goes: tuple[str, ...] = ()
) -> Card:
    """Returns the card of a service that was never started; what it needs is found out when it is planned.

    `goes` are those of its group that are up: they would stop, whatever it needs.
    """
    deeds = deeds_of(Standing(State.STOPPED, False, goes or None, switching=switching))
    return Card(
        name=wish.name, model=model_of(wish) or wish.name, engine=wish.engine, state=State.STOPPED, since=since, why=why,
        deeds=deeds, expected_s=expected_s, is_new=True, goes=goes, answers=model_of(wish) is not None,
    )  # fmt: skip


def card_of(view: ServiceView, deeds: Deeds, pace: Pace, **more: object) -> Card:
    """Returns the card of a service by its view; `more` are the card's other fields."""
    shared = {name: getattr(view, name) for name in Card.__struct_fields__ if name in ServiceView.__struct_fields__}
    return Card(**shared | {"deeds": deeds, "pace": pace, "resident_bytes": view.memory_bytes} | more)


def view_verdict(kept: KeptVerification, plan_id: str) -> VerdictView:
    """Returns what a card tells of a verification."""
    asked = kept.verification
    probes = tuple((probe.name, probe.verdict.value) for probe in asked.probes)
    return VerdictView(asked.begun, kept.occasion, asked.verdict.value, kept.plan_id == plan_id, probes)


def parts_of(memory: Memory, cards: Iterable[Card]) -> tuple[MemoryPart, ...]:
    """Returns the machine's memory in parts: services, everything else, the page cache that can be had back, and free.

    Weights that are mapped lie in the page cache and are resident too: no service gets more than what is not available.
    """
    return tuple(part for part in _parts(memory, cards) if part.bytes > 0)


def _parts(memory: Memory, cards: Iterable[Card]) -> Iterator[MemoryPart]:
    left_bytes = used_bytes = max(0, memory.total_bytes - memory.available_bytes)
    for card in cards:
        mine_bytes = min(left_bytes, card.resident_bytes or 0)
        left_bytes -= mine_bytes
        yield MemoryPart("service", mine_bytes, card.name)
    yield MemoryPart("other", left_bytes)
    free_bytes = min(memory.free_bytes, memory.available_bytes)
    yield MemoryPart("cache", memory.total_bytes - used_bytes - free_bytes)
    yield MemoryPart("free", free_bytes)
