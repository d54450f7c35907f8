"""One word for how weights are stored, out of every way in which releases say it."""

from __future__ import annotations

from typing import Any

import pytest

from stoker.facts.model.quantisation import name_cache_quantisation, name_quantisation, quantisation_table, read_packing
from stoker.facts.model.safetensors import Tensor


def group(bits: int, kind: str = "float", size: int | None = None, inputs: int | None = None) -> dict[str, Any]:
    activations = {"num_bits": inputs} if inputs else None
    return {"weights": {"num_bits": bits, "type": kind, "group_size": size}, "input_activations": activations}


def compressed(*groups: dict[str, Any]) -> dict[str, Any]:
    return {"quant_method": "compressed-tensors", "config_groups": {f"group_{n}": one for n, one in enumerate(groups)}}


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"quant_method": "mxfp4"}, "mxfp4"),
        ({"quant_method": "fp8"}, "fp8"),
        ({"quant_method": "fbgemm_fp8"}, "fp8"),
        ({"quant_method": "awq", "bits": 4}, "awq"),
        ({"quant_method": "gptq_marlin", "bits": 4}, "gptq"),
        ({"quant_method": "auto-round", "bits": 4, "packing_format": "auto_round:auto_gptq"}, "gptq"),
        ({"quant_method": "auto-round", "bits": 4}, "w4a16"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}, "nf4"),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8"),
        ({"quant_method": "modelopt", "quant_algo": "MXFP8"}, "mxfp8"),
        ({"quant_algo": "MIXED_PRECISION", "quantized_layers": {"a": {"quant_algo": "FP8"}, "b": {"quant_algo": "NVFP4"}}},
         "nvfp4"),
        ({"quant_algo": "MIXED_PRECISION"}, "mixed"),
        (compressed(group(4, size=16, inputs=4)), "nvfp4"),
        (compressed(group(4, size=16)), "nvfp4"),
        (compressed(group(4, size=32)), "mxfp4"),
        (compressed(group(8, inputs=8)), "fp8"),
        (compressed(group(8, "int", inputs=8)), "w8a8"),
        (compressed(group(4, "int", 128)), "w4a16"),
        (compressed(group(8, inputs=8), group(4, size=16, inputs=4)), "nvfp4"),
        ({"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"}, "nvfp4"),
        ({"qformat_weight": "fp8_e4m3", "qscheme_act": "TENSOR"}, "fp8"),
        ({"quant_method": "a-new-one"}, "a-new-one"),
        ({}, None),
    ],
)  # fmt: skip
def test_settings_have_a_word(settings: dict[str, Any], word: str | None) -> None:
    assert name_quantisation(settings, {}) == word


@pytest.mark.parametrize(
    ("tensors", "word"),
    [
        ({"a.weight": "BF16", "b.weight": "F32"}, "bf16"),
        ({"a.weight": "F16"}, "f16"),
        ({"a.weight": "F8_E4M3", "a.weight_scale": "F32"}, "fp8"),
        ({"a.weight": "I8", "a.weight_scale": "F32"}, "int8"),
        ({"a.weight_packed": "U8", "a.weight_global_scale": "F32"}, "nvfp4"),
        ({"a.weight": "U8", "a.weight_scale_2": "F32"}, "nvfp4"),
        ({"a.experts.down_proj_blocks": "U8"}, "mxfp4"),
        ({"a.qweight": "I32", "a.g_idx": "I32"}, "gptq"),
        ({"a.qweight": "I32", "a.scales": "F16"}, "awq"),
        ({"a.weight": "U8", "a.weight.quant_state.bitsandbytes__nf4": "U8"}, "nf4"),
        ({"a.weight": "NEW"}, None),
    ],
)
def test_without_settings_the_tensors_tell(tensors: dict[str, str], word: str | None) -> None:
    sizes = {name: Tensor(dtype, (8,), (0, 8 if name.endswith("weight") else 4)) for name, dtype in tensors.items()}
    assert name_quantisation({}, sizes) == word


def test_settings_are_found_wherever_they_are_kept() -> None:
    nvfp4 = {"quant_method": "modelopt", "quant_algo": "NVFP4"}
    assert quantisation_table({"quantization_config": nvfp4}, {}) == nvfp4
    assert quantisation_table({"text_config": {"quantization_config": nvfp4}}, {}) == nvfp4
    assert quantisation_table({"compression_config": nvfp4}, {}) == nvfp4
    beside = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}}
    assert name_quantisation(quantisation_table({}, beside), {}) == "nvfp4"
    assert name_cache_quantisation(quantisation_table({}, beside)) == "fp8"


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"kv_cache_quant_algo": "NVFP4"}, "nvfp4"),
        ({"kv_cache_scheme": {"num_bits": 8, "type": "float"}}, "fp8"),
        ({"kv_cache_scheme": {"num_bits": 8, "type": "int"}}, "int8"),
        ({"kv_cache_scheme": None}, None),
        ({}, None),
    ],
)
def test_the_type_of_cache_that_a_checkpoint_asks_for(settings: dict[str, Any], word: str | None) -> None:
    assert name_cache_quantisation(settings) == word


@pytest.mark.parametrize(
    ("settings", "bits"),
    [
        ({"bits": 8}, 8),
        ({"w_bit": 3}, 3),
        (compressed(group(8, "int", 128)), 8),
        ({"bits": 0}, 4),
        ({"bits": 99}, 4),
        ({}, 4),
    ],
)
def test_how_many_bits_a_packed_weight_has(settings: dict[str, Any], bits: int) -> None:
    assert read_packing(settings, {}).word_bits == bits
