"""From a config to what the model remembers: layers of each kind, counted by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.facts.model.architecture import read_shape
from stoker.facts.model.attention import kv_bytes_per_token, read_cache
from stoker.facts.model.mistral import to_config
from stoker.records import CacheLayers

BASE: dict[str, Any] = {
    "hidden_size": 64, "num_hidden_layers": 6, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 16,
    "max_position_embeddings": 4096,
}  # fmt: skip
EACH = 2 * 16 * 2
SLIDES, FULL = "sliding_attention", "full_attention"


def full(layers: int, each: int = EACH) -> CacheLayers:
    return CacheLayers("full", layers, layers * each)


def window(layers: int, tokens: int, each: int = EACH) -> CacheLayers:
    return CacheLayers("window", layers, layers * each, window_tokens=tokens)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, (full(6),)),
        ({"num_key_value_heads": None}, (full(6, 8 * 16 * 2),)),  # each head its own keys
        ({"head_dim": None}, (full(6, 2 * 8 * 2),)),  # 64 / 8
        ({"multi_query": True}, (full(6, 16 * 2),)),
        ({"v_head_dim": 8}, (full(6, 2 * (16 + 8)),)),
        ({"sliding_window": 512}, (window(6, 512),)),
        ({"sliding_window": 512, "use_sliding_window": False}, (full(6),)),
        ({"sliding_window": 8192}, (full(6),)),  # wider than the model is long
        ({"sliding_window": 512, "use_sliding_window": True, "max_window_layers": 4}, (full(4), window(2, 512))),
        ({"sliding_window": 512, "sliding_window_pattern": 3}, (window(4, 512), full(2))),
        ({"sliding_window": 512, "layer_types": [SLIDES] * 5 + [FULL]}, (window(5, 512), full(1))),
        ({"attention_chunk_size": 256, "no_rope_layers": [1, 1, 1, 0, 1, 1]}, (window(5, 256), full(1))),
        ({"model_type": "gemma2", "sliding_window": 512}, (window(3, 512), full(3))),
    ],
)
def test_heads_and_windows(changes: dict[str, Any], expected: tuple[CacheLayers, ...]) -> None:
    assert read_cache({**BASE, **changes}) == expected


def test_global_layers_may_have_heads_of_their_own_and_late_ones_none() -> None:
    config = {  # Gemma 4 E2B
        "model_type": "gemma4", "vision_config": {"depth": 3},
        "text_config": {
            "hidden_size": 1536, "num_hidden_layers": 35, "num_attention_heads": 8, "num_key_value_heads": 1,
            "head_dim": 256, "global_head_dim": 512, "num_global_key_value_heads": None, "sliding_window": 512,
            "num_kv_shared_layers": 20,
            "layer_types": ([SLIDES] * 4 + [FULL]) * 7,
        },
    }  # fmt: skip
    assert read_cache(config) == (window(12, 512, 2 * 256), full(3, 2 * 512))
    config["text_config"] |= {"num_kv_shared_layers": 0, "num_global_key_value_heads": 2}  # type: ignore[operator]
    assert read_cache(config) == (window(28, 512, 2 * 256), full(7, 2 * 2 * 512))


def test_sliding_layers_may_have_heads_of_their_own() -> None:
    config = {
        **BASE, "hybrid_layer_pattern": [0, 1, 1, 0, 1, 1], "sliding_window": 128, "v_head_dim": 8,
        "swa_num_key_value_heads": 4, "swa_head_dim": 16, "swa_v_head_dim": 8,
    }  # fmt: skip
    assert read_cache(config) == (full(2, 2 * (16 + 8)), window(4, 128, 4 * (16 + 8)))


def test_the_latent_of_mla_is_kept_once_with_its_rotary_part() -> None:
    mla = {**BASE, "num_hidden_layers": 61, "kv_lora_rank": 512, "qk_rope_head_dim": 64}
    assert read_cache(mla) == (CacheLayers("mla", 61, 61 * 576),)
    assert kv_bytes_per_token(read_cache(mla)) == 70_272
    sparse = {**mla, "index_topk": 2048, "index_head_dim": 128}
    assert read_cache(sparse) == (CacheLayers("mla", 61, 61 * (576 + 128)),)


def test_nemotron_h_says_its_layers_in_letters() -> None:
    config = {  # Nemotron 3 Nano 30B-A3B
        "hidden_size": 2688, "num_hidden_layers": 52, "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128,
        "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME", "mamba_num_heads": 64,
        "mamba_head_dim": 64, "ssm_state_size": 128, "n_groups": 8, "conv_kernel": 4, "mamba_ssm_cache_dtype": "float32",
    }  # fmt: skip
    # A convolution of 3 inputs of 4,096 + 2*8*128 in 16 bits; 64 heads of 64 by 128 in 32 bits
    one_bytes = 3 * 6144 * 2 + 64 * 64 * 128 * 4
    assert read_cache(config) == (CacheLayers("state", 23, state_bytes=23 * one_bytes), full(6, 2 * 128 * 2))
    narrow = {**config, "mamba_ssm_cache_dtype": "bfloat16"}
    assert read_cache(narrow)[0].state_bytes == 23 * (3 * 6144 * 2 + 64 * 64 * 128 * 2)


@pytest.mark.parametrize(
    ("changes", "state_bytes"),
    [
        # Mamba of the first kind: 128 inner values, no heads
        ({"layer_types": ["mamba", "attention"] * 3, "mamba_expand": 2, "mamba_d_state": 16, "mamba_d_conv": 4},
         3 * (3 * 128 * 2 + 128 * 16 * 4)),
        # Mamba of the second kind, whose heads share the inner values
        ({"layer_types": ["mamba", "attention"] * 3, "mamba_n_heads": 4, "mamba_d_head": "auto", "mamba_expand": 2,
          "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_n_groups": 1}, 3 * (3 * (128 + 32) * 2 + 4 * 32 * 16 * 4)),
        # a short convolution and nothing else
        ({"layer_types": ["conv", FULL] * 3, "conv_L_cache": 3}, 3 * 2 * 64 * 2),
        # Kimi's delta attention, its full layers counted from 1
        ({"linear_attn_config": {"full_attn_layers": [2, 4, 6], "num_heads": 4, "head_dim": 8, "short_conv_kernel_size": 4}},
         3 * (3 * 3 * 32 * 2 + 4 * 8 * 8 * 4)),
        ({"attn_type_list": [0, 1] * 3}, 3 * 8 * 16 * 16 * 4),
    ],
)  # fmt: skip
def test_layers_that_keep_a_state(changes: dict[str, Any], state_bytes: int) -> None:
    assert read_cache({**BASE, **changes}) == (CacheLayers("state", 3, state_bytes=state_bytes), full(3))


def test_an_interval_stands_for_a_list_of_layers() -> None:
    linear = {
        "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 8,
        "linear_conv_kernel_dim": 4,
    }  # fmt: skip
    listed = {**BASE, **linear, "layer_types": ["linear_attention", "linear_attention", FULL] * 2}
    assert read_cache({**BASE, **linear, "full_attention_interval": 3}) == read_cache(listed)
    assert read_cache(listed)[0] == CacheLayers("state", 4, state_bytes=4 * (3 * (2 * 16 + 32) * 2 + 4 * 8 * 8 * 4))


@pytest.mark.parametrize(
    "changes",
    [
        {"num_hidden_layers": None},
        {"num_hidden_layers": 10**6},
        {"num_attention_heads": None, "num_key_value_heads": None},
        {"layer_types": ["a_kind_of_next_year"] * 6},
        {"layer_types": [FULL] * 5},  # one too few
        {"layer_types": [3] * 6},
        {"layer_types": ["linear_attention", FULL] * 3},  # of what size?
        {"mamba_d_ssm": 128},  # both kinds in each layer, which only its code says
        {"compress_ratios": [4, 128]},
        {"block_configs": [{"attention": {"no_op": True}}]},
        {"hybrid_override_pattern": "M?M?M?"},
        {"num_key_value_heads": 2**39, "head_dim": 2**39},
    ],
)
def test_what_is_said_in_other_words_is_unknown_and_not_zero(changes: dict[str, Any]) -> None:
    cache = read_cache({**BASE, **changes})
    assert cache == ()
    assert kv_bytes_per_token(cache) is None


def test_a_model_of_windows_alone_adds_nothing_for_good() -> None:
    assert kv_bytes_per_token(read_cache({**BASE, "sliding_window": 512})) == 0


@pytest.mark.parametrize(
    ("config", "context"),
    [
        ({"max_position_embeddings": 32768}, 32768),
        ({"max_position_embeddings": 32768, "rope_scaling": {"type": "yarn", "factor": 4.0,
                                                            "original_max_position_embeddings": 32768}}, 131072),
        ({"rope_parameters": {"rope_type": "yarn", "factor": 2, "original_max_position_embeddings": 100}}, 200),
        ({"max_position_embeddings": 131072, "rope_scaling": {"rope_type": "linear", "factor": 8.0}}, 131072),
        ({"max_position_embeddings": 10, "rope_scaling": {"rope_type": "yarn", "factor": float("nan"),
                                                         "original_max_position_embeddings": 10}}, 10),
        ({"max_position_embeddings": 10, "rope_scaling": {"rope_type": "yarn", "factor": 10**400,
                                                         "original_max_position_embeddings": 10}}, 40960),
        ({"n_positions": 1024}, 1024),
        ({"text_config": {"max_position_embeddings": 8}}, 8),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_how_far_a_model_can_look_back(config: dict[str, Any], context: int | None) -> None:
    assert read_shape(config).context_tokens == context


def test_params_of_mistral_say_the_same_in_other_words() -> None:
    params = {
        "dim": 64, "n_layers": 6, "n_heads": 8, "n_kv_heads": 2, "head_dim": 16, "max_seq_len": 4096,
        "sliding_window": [None, 512, 512], "moe": {"num_experts": 8, "num_experts_per_tok": 2},
    }  # fmt: skip
    config = to_config(params)
    assert read_cache(config) == (full(2), window(4, 512))
    shape = read_shape(config)
    assert (shape.architecture, shape.experts, shape.experts_per_token) == ("MixtralForCausalLM", 8, 2)
    assert (shape.context_tokens, shape.hidden_size) == (4096, 64)
    assert read_shape(to_config({"dim": 8})).architecture == "MistralForCausalLM"
    assert read_shape(to_config({"multimodal": {"vision_encoder_args": {"dim": 8}}})).has_vision


ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["attention", "conv", "yarn", "M", "float32", ""]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["factor", "type", "num_heads"]), inner),
    max_leaves=6,
)
KEYS = [
    *BASE, "layer_types", "sliding_window", "sliding_window_pattern", "kv_lora_rank", "qk_rope_head_dim", "rope_scaling",
    "linear_attn_config", "hybrid_override_pattern", "full_attention_interval", "num_kv_shared_layers", "conv_L_cache",
    "mamba_expand", "mamba_d_state", "mamba_d_conv", "text_config", "model_type", "architectures", "n_layers", "moe", "yarn",
]  # fmt: skip


@given(st.dictionaries(st.sampled_from(KEYS), ANY, max_size=8))
def test_no_config_ends_in_a_traceback(config: dict[str, Any]) -> None:
    for one in (config, {**BASE, **config}, to_config(config)):
        cache = read_cache(one)
        assert all(layers.layers > 0 and layers.values_per_token >= 0 for layers in cache)
        assert read_shape(one).architecture
