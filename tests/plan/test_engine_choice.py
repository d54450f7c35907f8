"""Which engine serves a model, and why."""

from __future__ import annotations

import pytest
from known import GB10, MISTRAL, PC, QWEN, make_checkpoint

from stoker.errors import Refused, WrongUse
from stoker.plan.engine_choice import choose_engine
from stoker.records import Wish
from support import fails, make_model


def wish(**changes: object) -> Wish:
    return Wish(**{"name": "coder", "model": "/m", **changes})  # type: ignore[arg-type]


def test_a_gguf_is_served_by_llama_cpp() -> None:
    assert choose_engine(wish(), make_model(), PC)[0] == "llamacpp"


def test_the_engine_that_was_measured_fastest_is_taken() -> None:
    engine, because = choose_engine(wish(draft="/eagle"), MISTRAL, GB10)
    assert engine == "sglang"
    assert "41 tok/s with eagle measured" in because
    assert choose_engine(wish(), QWEN, GB10)[0] == "sglang"


def test_what_needs_a_draft_does_not_count_where_there_is_none() -> None:
    engine, because = choose_engine(wish(), MISTRAL, GB10)
    assert engine == "vllm"
    assert "31.07 tok/s measured" in because


def test_an_image_of_another_engine_than_the_one_asked_for_is_refused() -> None:
    with fails(Refused, "`engine` is vllm", "holds sglang"):
        choose_engine(wish(engine="vllm", image="lmsysorg/sglang:latest"), MISTRAL, GB10)


def test_a_model_that_nobody_measured_gets_the_most_general_engine_and_says_so() -> None:
    engine, because = choose_engine(wish(), make_checkpoint(name="Unheard-of-9000B", repository=None, path="/x"), GB10)
    assert engine == "vllm"
    assert "nobody measured" in because


@pytest.mark.parametrize(
    ("changes", "engine"),
    [
        ({"engine": "vllm"}, "vllm"),
        ({"image": "lmsysorg/sglang:latest"}, "sglang"),
        ({"image": "nvcr.io/nvidia/vllm:26.05-py3"}, "vllm"),
        ({"image": "scitrera/dgx-spark-sglang:0.5.12"}, "sglang"),
        ({"program": ("/opt/venv/bin/python", "-m", "sglang.launch_server")}, "sglang"),
    ],
)
def test_what_the_user_names_decides(changes: dict[str, object], engine: str) -> None:
    assert choose_engine(wish(**changes), MISTRAL, GB10)[0] == engine


def test_an_engine_that_cannot_load_the_format_is_refused_with_one_that_can() -> None:
    with fails(Refused, "llamacpp does not load safetensors", "sglang or vllm"):
        choose_engine(wish(engine="llamacpp"), MISTRAL, GB10)
    with fails(Refused, "vllm does not load gguf", "llamacpp"):
        choose_engine(wish(engine="vllm"), make_model(), GB10)


def test_an_engine_that_does_not_exist_is_wrong_use() -> None:
    with fails(WrongUse, "there is no engine called `vlm`"):
        choose_engine(wish(engine="vlm"), MISTRAL, GB10)


def test_without_a_gpu_the_way_out_is_a_gguf() -> None:
    with fails(Refused, "needs a GPU", "fetch the model as GGUF"):
        choose_engine(wish(), MISTRAL, PC)
