"""Which files engines need of a repository."""

from __future__ import annotations

import pytest

from stoker.errors import Refused, WrongUse
from stoker.facts.model.hub import quantisation_of
from stoker.fetch.choose import choose_files
from stoker.fetch.listing import HubFile
from support import fails


def chosen(*names: str, quantisation: str | None = None, everything: bool = False) -> set[str]:
    files = tuple(HubFile(name, 1, "0" * 40) for name in names)
    return {file.name for file in choose_files("org/name", files, quantisation, everything).files}


BESIDE = ("config.json", "tokenizer.json", "README.md", "LICENSE", "modeling_x.py", "chat_template.jinja")


def test_safetensors_come_without_copies_for_other_frameworks() -> None:
    other = ("pytorch_model.bin", "model.onnx", "onnx/model.onnx_data", "tf_model.h5", "flax_model.msgpack", "a-Q4_0.gguf")
    assert chosen(*BESIDE, "model.safetensors", *other) == {*BESIDE, "model.safetensors"}


def test_of_two_layouts_of_the_same_weights_one_comes() -> None:
    twice = (*BESIDE, "params.json", "tekken.json", "model-00001-of-00001.safetensors", "consolidated.safetensors")
    assert chosen(*twice) == {*twice} - {"consolidated.safetensors"}
    native = ("params.json", "tekken.json", "consolidated-00001-of-00001.safetensors", "consolidated.safetensors.index.json")
    assert chosen(*native) == {*native}


def test_weights_in_folders_of_their_own_stay_away() -> None:
    names = ("config.json", "model.safetensors", "original/model--00001.safetensors", "original/config.json")
    assert chosen(*names) == {"config.json", "model.safetensors", "original/config.json"}


def test_all_is_all() -> None:
    names = ("model.safetensors", "pytorch_model.bin", "a.png")
    assert chosen(*names, everything=True) == {*names}


def test_a_quantisation_brings_all_its_parts_and_the_projector() -> None:
    parts = tuple(f"Q8_0/a-Q8_0-0000{number}-of-00002.gguf" for number in (1, 2))
    names = (*parts, "a-Q4_K_M.gguf", "mmproj-F16.gguf", "README.md", "imatrix.png")
    assert chosen(*names, quantisation="q8_0") == {*parts, "mmproj-F16.gguf", "README.md"}


def test_a_single_gguf_needs_no_name() -> None:
    assert chosen("model.gguf", "README.md") == {"model.gguf", "README.md"}


def test_several_ggufs_are_the_users_choice() -> None:
    with fails(WrongUse, "holds several GGUF models", "org/name:Q4_K_M"):
        chosen("a-Q4_K_M.gguf", "a-Q8_0.gguf")
    with fails(WrongUse, "has no Q2_K", "org/name:Q8_0"):
        chosen("a-Q8_0.gguf", quantisation="Q2_K")


def test_a_repository_without_weights_for_our_engines_is_refused() -> None:
    with fails(Refused, "holds no weights", "pickled", "`--all`"):
        chosen("pytorch_model.bin")
    with fails(Refused, "holds no weights", "none of its files"):
        chosen("README.md")
    with fails(Refused, "holds no GGUF, so no Q8_0"):
        chosen("model.safetensors", quantisation="Q8_0")


@pytest.mark.parametrize(
    ("name", "quantisation"),
    [
        ("Qwen3-8B-Q4_K_M.gguf", "Q4_K_M"), ("qwen3-8b-q4_k_m.gguf", "Q4_K_M"), ("m-UD-IQ2_XXS.gguf", "UD-IQ2_XXS"),
        ("gpt-oss-20b-mxfp4.gguf", "MXFP4"), ("m.BF16.gguf", "BF16"), ("Q8_0/m-00001-of-00003.gguf", "Q8_0"),
        ("m-Q5_1-00001-of-00003.gguf", "Q5_1"), ("Qwen3-8B.gguf", None), ("model.gguf", None), ("F16/a-Q2_K.gguf", "Q2_K"),
    ],
)  # fmt: skip
def test_a_ggufs_name_tells_its_quantisation(name: str, quantisation: str | None) -> None:
    assert quantisation_of(name) == quantisation
