"""What to try on a new machine: what starts now, then by what the speed is worth, each with its reasons."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.plan.speed.memory import known_memory
from stoker.plan.suggestions import CACHE_SHARE, FLUENT_TOK_S, MOST_PUBLISHED, rank, suggest_published
from stoker.records import GIB
from stoker.records.speed import Prediction
from stoker.records.suggesting import Reach, Suggestion

GB10 = known_memory()[0]


def make(target: str, tok_s: float | None, billions: float = 8, reach: Reach = "now") -> Suggestion:
    speed = None if tok_s is None else Prediction(tok_s, tok_s, tok_s, tok_s)
    return Suggestion(target, target, reach, "vllm", "fp8", int(billions * 1e9), GIB, speed, None, ())


def test_fluent_ones_come_by_size_then_slow_ones_by_speed_then_the_unknown() -> None:
    suggestions = (
        make("unknown-large", None, 70), make("unknown-small", None, 1), make("slow", 4, 70), make("less-slow", 15, 27),
        make("large", 25, 120), make("quick", 300, 1), make("blocked", 50, 400, "blocked"), make("later", 30, 200, "waits"),
    )  # fmt: skip
    order = [one.target for one in rank(suggestions)]
    assert order[:6] == ["large", "quick", "less-slow", "slow", "unknown-small", "unknown-large"]
    assert order[6:] == ["later", "blocked"]


@given(st.permutations([make("a", 30, 1), make("b", 30, 1), make("c", None), make("d", 3), make("e", 90, 9, "elsewhere")]))
def test_the_order_does_not_hang_on_how_they_were_found(shuffled: list[Suggestion]) -> None:
    assert [one.target for one in rank(shuffled)] == ["a", "b", "d", "c", "e"]


def test_on_a_known_machine_those_that_fit_are_offered_with_who_measured_them() -> None:
    usable = 110 * GIB
    found = suggest_published(GB10, usable)
    assert len(found) == MOST_PUBLISHED
    assert len({one.target for one in found}) == len(found)
    for one in found:
        assert one.reach == "elsewhere"
        assert one.need_bytes is not None
        assert one.need_bytes <= CACHE_SHARE * usable
        assert one.speed is not None
        assert one.speed.decode_tok_s >= FLUENT_TOK_S
        assert "others measured" in one.because[-1]
        assert "https://" in one.because[-1]


def test_a_smaller_machine_is_offered_smaller_ones() -> None:
    large, small = ({one.target for one in suggest_published(GB10, size * GIB)} for size in (110, 24))
    assert "gpt-oss-120b" in large
    assert "gpt-oss-120b" not in small
    assert small


@pytest.mark.parametrize("usable", [0, GIB // 2])
def test_one_without_room_is_offered_nothing(usable: int) -> None:
    assert suggest_published(GB10, usable) == ()
