"""Bytes of a step, shapes by name and by files, layouts of checkpoints, and where the time goes."""

from __future__ import annotations

import pytest

from stoker.plan.speed.catalog import find_shape, known_shapes
from stoker.plan.speed.cost import cost_s
from stoker.plan.speed.from_model import served_of
from stoker.plan.speed.layout import plan_layout
from stoker.plan.speed.limit import GB10_BYTES_PER_S, step_bytes
from stoker.plan.speed.memory import known_memory
from stoker.plan.speed.outlook import Question, predict_speed, prefill_tok_s
from stoker.plan.speed.prediction import load_fit
from stoker.plan.speed.work import Served, Step, step_terms
from stoker.records import CacheLayers, Model

GIGA = 1e9
FIT, GB10 = load_fit(), known_memory()[0]


def served(name: str, quantisation: str, engine: str = "vllm", weights_gb: float | None = None) -> Served:
    shape = find_shape(name)
    assert shape is not None
    return Served(shape, plan_layout(shape, quantisation, engine, weights_gb), engine)


@pytest.mark.parametrize(
    ("name", "total_b", "active_b"),
    [
        ("mistralai/Mistral-Small-4-119B-2603-NVFP4", 119, 6.1),
        ("Qwen/Qwen3.6-27B-FP8", 26.9, 25.6),
        ("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4", 120.7, 12.2),
        ("openai/gpt-oss-120b", 116.8, 5.1),
        ("google/gemma-4-26B-A4B-it", 25.2, 3.8),
        ("Qwen3.6-35B-A3B", 34.7, 3.0),
    ],
)
def test_a_published_model_is_known_by_its_name(name: str, total_b: float, active_b: float) -> None:
    shape = find_shape(name)
    assert shape is not None
    assert not shape.is_guess
    assert shape.total_b == pytest.approx(total_b, rel=0.01)
    assert shape.active_b == pytest.approx(active_b, rel=0.03)


def test_every_known_model_counts_as_many_parameters_as_its_name_says() -> None:
    for shape in known_shapes():
        words = [word for word in shape.names[0].split() if word.endswith("b") and word[0].isdigit()]
        for word in words:
            assert shape.total_b == pytest.approx(float(word[:-1]), rel=0.25), shape.names


def test_another_size_of_a_known_name_is_another_model() -> None:
    shape = find_shape("Qwen3.6-27B", total_b=9)
    assert shape is not None
    assert shape.is_guess
    assert shape.total_b == pytest.approx(9, rel=0.05)


@pytest.mark.parametrize(("total_b", "active_b"), [(0.5, None), (7, None), (70, None), (30, 3.0), (284, 13.0), (30, 29.0)])
def test_a_guessed_shape_has_the_size_that_was_said(total_b: float, active_b: float | None) -> None:
    shape = find_shape("unheard-of", total_b, active_b)
    assert shape is not None
    assert shape.total_b == pytest.approx(total_b, rel=0.05)
    if active_b is not None and active_b < 0.6 * total_b:
        assert shape.active_b == pytest.approx(active_b, rel=0.15)


def test_the_bytes_of_a_token_are_those_that_were_counted_by_hand() -> None:
    read = step_bytes(served("Mistral-Small-4-119B-2603-NVFP4", "NVFP4"), 1, 1, 0)
    assert read.total / GIGA == pytest.approx(6.9, rel=0.02)  # 2.04 routed, 1.81 shared, 2.03 attention, 1.07 head
    assert GB10_BYTES_PER_S / read.total == pytest.approx(39, rel=0.02)


def test_dense_weights_are_read_once_for_all_requests_and_experts_for_each() -> None:
    dense, mixture = served("Qwen3.6-27B", "FP8"), served("Qwen3.6-35B-A3B", "FP8")
    assert step_bytes(dense, 8, 1, 0).mlp == step_bytes(dense, 1, 1, 0).mlp
    one, eight, all_of_it = (step_bytes(mixture, count, 1, 0).routed for count in (1, 8, 4096))
    assert one < eight < 8 * one
    assert all_of_it == pytest.approx(mixture.shape.parameters("routed"), rel=0.01)


def test_a_window_bounds_the_cache_and_full_attention_does_not() -> None:
    windowed, full = served("gemma-4-31B-it", "BF16"), served("Ministral-3-8B", "FP8")
    for what, grows in ((windowed, 9.0), (full, 10.0)):
        few, many = (step_bytes(what, 1, 1, depth).cache for depth in (2000, 20_000))
        assert (many / few < grows - 1) == (what is windowed)
    assert step_bytes(windowed, 1, 1, 2000).cache > 0


@pytest.mark.parametrize(
    ("quantisation", "engine", "weights_gb", "part", "expected"),
    [
        ("NVFP4", "vllm", None, "mixer", 2.0),  # the usual 4-bit release of this model keeps attention in 16 bits
        ("BF16", "vllm", None, "mlp", 2.0),
        ("FP8-Dynamic", "vllm", None, "head", 2.0),
        ("Q4_K_M", "llamacpp", None, "head", 0.82),
        ("EXL3 4bpw", "vllm", None, "mlp", 0.5),
        ("NVFP4", "vllm", 32.7, "mixer", 2.0),
        ("something new", "vllm", None, "mlp", 1.0),
    ],
)
def test_a_layout_is_read_from_name_engine_and_size(
    quantisation: str, engine: str, weights_gb: float | None, part: str, expected: float
) -> None:
    layout = served("gemma-4-31B-it", quantisation, engine, weights_gb).layout
    assert getattr(layout, part) == pytest.approx(expected, abs=0.1)
    assert layout.is_guess == (quantisation == "something new")


def test_a_release_that_is_stored_otherwise_than_it_is_called_is_known() -> None:
    assert served("Ministral-3-8B-Instruct-2512", "BF16").layout.mlp == 1.0


def test_two_machines_halve_the_reading_and_add_a_link() -> None:
    one = served("Qwen3.6-27B", "FP8")
    two = Served(one.shape, one.layout, one.engine, boxes=2)
    alone, shared = (step_terms(what, Step(1)) for what in (one, two))
    assert ("step.link",) in shared
    assert ("step.link",) not in alone
    assert cost_s(alone, FIT.factors) / 2 < cost_s(shared, FIT.factors) < cost_s(alone, FIT.factors)


def test_facts_of_files_make_a_shape_where_the_name_is_unknown() -> None:
    model = Model(
        path="/models/own", name="own", architecture="OwnForCausalLM", file_bytes=16_000_000_000, parameters=8_000_000_000,
        active_parameters=8_000_000_000, quantisation="bf16", context_tokens=8192, kv_bytes_per_token=131_072,
        vocabulary_hash=None, has_chat_template=True, licence=None, layers=32, hidden_size=4096, vocabulary_size=128_000,
        cache=(CacheLayers("full", 32, 65_536),),
    )  # fmt: skip
    found = served_of(model, "vllm")
    assert found is not None
    assert found.shape.total_b == pytest.approx(8, rel=0.01)
    assert step_bytes(found, 1, 1, 1000).cache == 65_536 * 1000 * 2
    assert step_bytes(found, 1, 1, 0).total < model.file_bytes


def test_a_measured_rate_is_explained_to_the_last_percent() -> None:
    question = Question(served=served("Qwen3.6-27B-FP8", "FP8"), measured_tok_s=7.8)
    view = predict_speed(question, "Qwen3.6-27B-FP8", "fp8", "GB10", GB10, FIT)
    assert view.measured is not None
    assert view.expected is not None
    assert view.expected.low_tok_s < 7.8 < view.expected.high_tok_s < view.limit_tok_s * 1.1
    assert view.measured.of_limit == pytest.approx(7.8 / view.limit_tok_s)
    assert view.measured.of_limit + sum(part.share for part in view.measured.rest) == pytest.approx(1, abs=0.01)


def test_on_a_machine_that_was_not_fitted_only_the_limit_is_told() -> None:
    memory = next(one for one in known_memory() if not one.fitted)
    view = predict_speed(Question(served=served("Qwen3.6-27B", "FP8")), "x", "fp8", "that machine", memory, FIT)
    assert view.expected is None
    assert "GB10" in view.why
    assert view.limit_tok_s > 100


def test_long_prompts_are_read_slower_than_short_ones() -> None:
    what = served("gemma-4-31B-it", "BF16")
    assert prefill_tok_s(what, 25_000, FIT) < prefill_tok_s(what, 4096, FIT)
