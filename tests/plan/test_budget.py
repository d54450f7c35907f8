"""The memory that a service should need: by value, and its promises for any model."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stoker.engines.llamacpp import COMPUTE_FLOOR_BYTES, PROCESS_BYTES
from stoker.plan.budget import predict_need_bytes
from stoker.records import GIB, MIB, Model
from support import make_model

models = st.builds(
    make_model,
    file_bytes=st.integers(0, 2**42),
    kv_bytes_per_token=st.none() | st.integers(0, 2**24),
    name=st.text(max_size=9),
)
some_models = st.lists(models, min_size=1, max_size=3)
contexts = st.integers(0, 2**31)


def test_a_models_need_is_the_sum_that_its_reason_tells() -> None:
    need_bytes, because = predict_need_bytes([make_model(file_bytes=GIB, kv_bytes_per_token=MIB)], 1024)
    compute_bytes = COMPUTE_FLOOR_BYTES + int(GIB * 0.05)
    assert need_bytes == GIB + GIB + compute_bytes + PROCESS_BYTES
    assert because == "weights 1,024 MiB + KV cache 1,024 MiB for 1,024 tokens + buffers 115 MiB + process 96 MiB"


def test_a_draft_adds_its_weights_and_its_cache() -> None:
    model, draft = make_model(file_bytes=GIB, kv_bytes_per_token=1000), make_model(file_bytes=MIB, kv_bytes_per_token=10)
    alone, _ = predict_need_bytes([model], 100)
    both, because = predict_need_bytes([model, draft], 100)
    assert both - alone == MIB + 1000 + int((GIB + MIB) * 0.05) - int(GIB * 0.05)
    assert because.startswith("weights 1,025 MiB")


def test_an_unknown_cache_is_said_and_not_passed_off_as_zero() -> None:
    _, because = predict_need_bytes([make_model(name="Odd", kv_bytes_per_token=None)], 4096)
    assert because.endswith("; the KV cache of Odd is unknown and not counted")


@given(some_models, contexts, contexts)
def test_more_context_never_needs_less(found: list[Model], one: int, other: int) -> None:
    less, more = sorted((one, other))
    assert predict_need_bytes(found, less)[0] <= predict_need_bytes(found, more)[0]


@given(some_models, contexts)
def test_the_need_is_never_less_than_the_weights_and_the_known_cache(found: list[Model], context: int) -> None:
    need_bytes, because = predict_need_bytes(found, context)
    weights_bytes = sum(model.file_bytes for model in found)
    cache_bytes = sum((model.kv_bytes_per_token or 0) * context for model in found)
    assert need_bytes >= weights_bytes + cache_bytes + PROCESS_BYTES
    assert "-" not in because.split(";")[0]


@given(some_models, models, contexts)
def test_a_second_model_never_needs_less(found: list[Model], another: Model, context: int) -> None:
    assert predict_need_bytes([*found, another], context)[0] >= predict_need_bytes(found, context)[0]
