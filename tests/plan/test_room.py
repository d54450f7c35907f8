"""What has to stop so that a service fits: the cases of a box that one large service fills, and promises for any."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stoker.plan.room import Claim, OnCard, to_stop, together_share

GB = 10**9
TOTAL = 128 * GB
SGLANG, VOXTRAL, COMFYUI = Claim("sglang", 94 * GB), Claim("voxtral", 111 * GB), Claim("comfyui", 14 * GB)
claims = st.lists(st.builds(Claim, st.text("abc", min_size=1, max_size=3), st.integers(0, 10**12)), max_size=6)


def test_nothing_stops_where_there_is_room() -> None:
    assert to_stop(14 * GB, 30 * GB, [SGLANG]) == ()


def test_a_speech_model_of_111_gb_and_a_language_model_of_94_take_turns() -> None:
    assert to_stop(VOXTRAL.held_bytes, TOTAL - SGLANG.held_bytes - 6 * GB, [SGLANG]) == ("sglang",)
    assert together_share(VOXTRAL.held_bytes, [SGLANG], TOTAL) > 1.5


def test_the_fewest_are_stopped() -> None:
    assert to_stop(100 * GB, 10 * GB, [COMFYUI, SGLANG]) == ("sglang",)
    assert to_stop(110 * GB, 6 * GB, [COMFYUI, SGLANG]) == ("sglang", "comfyui")


def test_what_can_never_fit_is_said() -> None:
    assert to_stop(200 * GB, 10 * GB, [COMFYUI, SGLANG]) is None


@given(claims, st.integers(0, 10**12), st.integers(0, 10**12))
def test_stopping_what_is_named_makes_room_and_no_less_would(running: list[Claim], need: int, available: int) -> None:
    named = to_stop(need, available, running)
    if named is None:
        assert available + sum(claim.held_bytes for claim in running) < need
        return
    ordered = sorted(running, key=lambda claim: (-claim.held_bytes, claim.service))
    assert available + sum(claim.held_bytes for claim in ordered[: len(named)]) >= need
    if named:
        assert available + sum(claim.held_bytes for claim in ordered[: len(named) - 1]) < need


BIG, SMALL, BESIDE = Claim("big", 4, 60), Claim("small", 3, 10), Claim("beside", 50)


def test_those_that_hold_a_card_stop_where_the_card_is_short() -> None:
    assert to_stop(5, 10, [BESIDE, BIG, SMALL], OnCard(40, 5)) == ("big",)
    assert to_stop(5, 10, [BESIDE, BIG, SMALL], OnCard(70, 5)) == ("big", "small")
    assert to_stop(5, 10, [BESIDE, BIG, SMALL], OnCard(5, 5)) == ()


def test_both_memories_have_to_have_room() -> None:
    assert to_stop(40, 10, [BESIDE, BIG, SMALL], OnCard(40, 5)) == ("big", "beside")
    assert to_stop(40, 10, [BESIDE, BIG, SMALL], OnCard(90, 5)) is None
    assert to_stop(400, 10, [BESIDE, BIG, SMALL], OnCard(1, 5)) is None
