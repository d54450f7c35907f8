"""The machine's memory in parts, and the cards of services."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.flows.cards import card_of, new_card, parts_of
from stoker.records import GIB, Memory, ServiceView, State, Wish
from stoker.records.dashboard import Card, Deeds, Pace

NO_DEEDS = Deeds(None, None, None, None, None)


def make_view(name: str, **more: object) -> ServiceView:
    usual = {
        "model": "m", "engine": "llamacpp", "state": State.READY, "since": 5.0, "why": "it answered", "address": None,
        "pid": 7, "memory_bytes": None, "memory_need_bytes": 3, "restarts": 0, "plan_id": "p", "exit_code": 0,
    }  # fmt: skip
    return ServiceView(name, **{**usual, **more})  # type: ignore[arg-type]


def make_card(name: str, resident_bytes: int | None) -> Card:
    return card_of(make_view(name, memory_bytes=resident_bytes), NO_DEEDS, Pace())


def test_the_parts_are_services_others_cache_and_free() -> None:
    memory = Memory(100 * GIB, 60 * GIB, 20 * GIB, 41 * GIB, 0, 0)
    found = [(part.kind, part.service, part.bytes // GIB) for part in parts_of(memory, [make_card("a", 30 * GIB)])]
    assert found == [("service", "a", 30), ("other", "", 10), ("cache", "", 40), ("free", "", 20)]


def test_what_is_unknown_or_mapped_takes_nothing_from_others() -> None:
    memory = Memory(100 * GIB, 60 * GIB, 20 * GIB, 41 * GIB, 0, 0)
    cards = [make_card("a", None), make_card("mapped", 70 * GIB), make_card("b", 5 * GIB)]
    assert [(part.kind, part.service) for part in parts_of(memory, cards)] == [
        ("service", "mapped"),
        ("cache", ""),
        ("free", ""),
    ]


@given(st.lists(st.integers(0, 2**40), max_size=6), *[st.integers(0, 2**40)] * 3)
def test_the_parts_make_the_whole(resident: list[int], total: int, available: int, free: int) -> None:
    memory = Memory(total, min(available, total), min(free, total), 0, 0, 0)
    parts = parts_of(memory, [make_card(f"s{at}", one) for at, one in enumerate(resident)])
    assert sum(part.bytes for part in parts) == total
    assert all(part.bytes > 0 for part in parts)


def test_a_card_says_what_the_service_says() -> None:
    card = card_of(
        make_view("a", awaits="it to load", memory_bytes=9), NO_DEEDS, Pace(running=2), revision="r1", goes=("b",)
    )
    assert (card.name, card.state, card.awaits, card.resident_bytes, card.pace.running) == ("a", "READY", "it to load", 9, 2)
    assert (card.revision, card.goes, card.is_new) == ("r1", ("b",), False)


@pytest.mark.parametrize(
    ("wish", "model", "answers"),
    [
        (Wish("a", "m.gguf"), "a", True),
        (Wish("a", "m.gguf", served_name="q"), "q", True),
        (Wish("a", engine="command"), "a", False),
    ],
)
def test_one_that_was_never_started_can_be(wish: Wish, model: str, answers: bool) -> None:
    card = new_card(wish, 0.0, "", 12.0)
    assert (card.model, card.answers, card.is_new, card.expected_s) == (model, answers, True, 12.0)
    assert card.deeds.start is None
    assert card.deeds.stop == "it is STOPPED"


def test_a_new_one_names_those_of_its_group_that_would_stop() -> None:
    card = new_card(Wish("a", "m.gguf", group="one"), 0.0, "", None, goes=("b",))
    assert (card.goes, card.deeds.switch) == (("b",), None)
    assert card.deeds.start == "there is no room beside b: switch to it"
