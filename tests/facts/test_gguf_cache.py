"""What the model in a GGUF remembers, from its metadata alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gguf import GGMLQuantizationType as Kind
from gguf import GGUFValueType as Type

from stoker.facts.model.gguf import Header
from stoker.facts.model.gguf_cache import read_gguf_cache
from stoker.facts.model.read import read_model
from stoker.records import CacheLayers
from support import write_gguf

BASE = {"block_count": 4, "embedding_length": 64, "attention.head_count": 8, "attention.head_count_kv": 2}
SSM = {"ssm.inner_size": 128, "ssm.state_size": 16, "ssm.conv_kernel": 4, "ssm.group_count": 2}
STATE_BYTES = 4 * ((128 + 2 * 2 * 16) * 3 + 128 * 16)  # of one layer, all of it in 32 bits


def cache(changes: dict[str, Any]) -> tuple[CacheLayers, ...]:
    return read_gguf_cache(Header({f"arch.{key}": value for key, value in {**BASE, **changes}.items()}, [], 0), "arch")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, (CacheLayers("full", 4, 4 * 2 * 16),)),
        ({"attention.key_length": 32, "attention.value_length": 4}, (CacheLayers("full", 4, 4 * 2 * 36),)),
        ({"attention.head_count_kv": [2, 0, 2, 2]}, (CacheLayers("full", 3, 6 * 16),)),
        ({"nextn_predict_layers": 1}, (CacheLayers("full", 3, 3 * 2 * 16),)),
        ({"attention.kv_lora_rank": 512, "rope.dimension_count": 64}, (CacheLayers("mla", 4, 4 * 576),)),
        ({**SSM, "full_attention_interval": 4},
         (CacheLayers("full", 1, 2 * 16), CacheLayers("state", 3, state_bytes=3 * STATE_BYTES))),
        ({**SSM, "attention.head_count_kv": [0, 0, 0, 2]},
         (CacheLayers("full", 1, 2 * 16), CacheLayers("state", 3, state_bytes=3 * STATE_BYTES))),
        ({**SSM, "attention.head_count_kv": [0, 0, 0, 0]}, (CacheLayers("state", 4, state_bytes=4 * STATE_BYTES),)),
        (SSM, ()),
        ({"block_count": 0}, ()),
        ({"block_count": 10**9}, ()),
        ({"attention.head_count_kv": [2, 2]}, ()),
        ({"attention.head_count_kv": [2, 2, "x", 2]}, ()),
        ({"attention.head_count_kv": 2**50, "embedding_length": 2**39}, ()),
    ],
)  # fmt: skip
def test_layers_of_each_kind(changes: dict[str, Any], expected: tuple[CacheLayers, ...]) -> None:
    assert cache(changes) == expected


def test_a_gguf_of_experts_tells_what_a_token_passes_through(tmp_path: Path) -> None:
    whole = {"a.expert_count": 8, "a.expert_used_count": 2, "a.block_count": 1, "a.embedding_length": 64, "a.vocab_size": 9}
    file = write_gguf(
        tmp_path / "a.gguf",
        architecture="a",
        tensors={"blk.0.ffn_up_exps.weight": ((8, 4, 32), Kind.Q8_0), "token_embd.weight": ((4, 32), Kind.F16)},
        pairs={**{key: (value, Type.UINT32) for key, value in whole.items()}, "a.nextn_predict_layers": (1, Type.UINT32)},
    )
    model = read_model(file)
    assert (model.parameters, model.active_parameters) == (8 * 4 * 32 + 128, 8 * 4 * 32 // 4 + 128)
    assert model.bytes_by_type == {"Q8_0": 8 * 4 * 34, "F16": 256}
    assert (model.experts, model.experts_per_token, model.draft_layers, model.vocabulary_size) == (8, 2, 1, 9)
    assert (model.layers, model.hidden_size, model.layouts) == (1, 64, ("gguf",))


def test_the_eyes_in_a_file_of_their_own_are_no_second_model(tmp_path: Path) -> None:
    write_gguf(tmp_path / "model-Q8_0.gguf")
    assert not read_model(tmp_path).has_vision
    write_gguf(tmp_path / "mmproj-F16.gguf", architecture="clip")
    assert read_model(tmp_path).has_vision


def test_a_template_in_a_gguf_is_looked_at_as_any_other(tmp_path: Path) -> None:
    template = ("{% if tools %}{{ enable_thinking }}{% endif %}", Type.STRING)
    model = read_model(write_gguf(tmp_path / "a.gguf", pairs={"tokenizer.chat_template": template}))
    assert model.template_features == ("tools", "thinking", "switch:enable_thinking")
