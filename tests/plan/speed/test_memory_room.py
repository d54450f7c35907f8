"""How many requests have room beside the weights, and that no interval goes beyond what the memory allows."""

from __future__ import annotations

import math

import pytest

from stoker.plan.speed.catalog import find_shape
from stoker.plan.speed.layout import plan_layout
from stoker.plan.speed.prediction import capped, load_fit, predict_row
from stoker.plan.speed.room import USABLE, room_for, say_room, weights_bytes
from stoker.plan.speed.work import Served, cached_bytes
from stoker.records import Prediction

GB10_BYTES = 128 * 10**9
ALONE = ("drafting none", "requests alone", "model known", "weights mixture")


def served(name: str, quantisation: str) -> Served:
    shape = find_shape(name)
    assert shape is not None
    return Served(shape, plan_layout(shape, quantisation, "vllm", None), "vllm")


def test_the_caches_of_so_many_fit_beside_the_weights_and_of_one_more_do_not() -> None:
    dense = served("Qwen3.6-27B", "bf16")
    assert weights_bytes(dense) == pytest.approx(55e9, rel=0.03), "27 B parameters of two bytes"
    count = room_for(dense, GB10_BYTES, 32_000)
    each = cached_bytes(dense, 32_000) + dense.shape.state_mb * 1e6
    assert 1 < count < math.inf
    assert weights_bytes(dense) + count * each <= USABLE * GB10_BYTES < weights_bytes(dense) + (count + 1) * each
    assert room_for(dense, GB10_BYTES, 64_000) < count
    assert say_room(dense, GB10_BYTES, 32_000) == ""


def test_what_has_no_room_is_said_with_what_takes_it() -> None:
    large = served("Llama-3.1-405B", "bf16")
    assert room_for(large, GB10_BYTES, 1000) == 0
    assert say_room(large, GB10_BYTES, 1000) == "it has no room there: it takes 810 GB, and an engine may have 115"
    dense = served("Qwen3.6-27B", "bf16")
    assert "with the cache of 2,000,000 tokens" in say_room(dense, GB10_BYTES, 2_000_000)


def test_an_interval_ends_where_the_limit_is_certain() -> None:
    assert capped(50.0, 30.0, ALONE, 40.0) == 40.0
    assert capped(35.0, 30.0, ALONE, 40.0) == 35.0
    assert capped(50.0, 41.0, ALONE, 40.0) == 41.0, "what is expected stays inside"
    for other in ("drafting usual", "requests short", "model guessed", "weights guessed"):
        kind = other.split()[0]
        found = tuple(other if one.startswith(kind) else one for one in ALONE)
        assert capped(50.0, 30.0, found, 40.0) == 50.0
    assert capped(50.0, 30.0, ("drafting none", "requests short", "model known", "weights dense"), 40.0) == 40.0


def test_a_dense_model_alone_is_never_promised_more_than_its_memory_gives() -> None:
    row = {"model": "Qwen2.5-Coder-7B", "quant": "q8_0", "engine": "llama.cpp", "spec_method": "none", "concurrency": "1"}
    found = predict_row(row, load_fit())
    assert isinstance(found, Prediction)
    assert found.low_tok_s < found.decode_tok_s < found.high_tok_s == found.limit_tok_s
