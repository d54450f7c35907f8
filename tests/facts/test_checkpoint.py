"""Folders of safetensors as they are published: every number counted by hand from the shapes."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

from checkpoints import (
    GPT_OSS,
    LLAMA,
    LLAMA_PARAMETERS,
    MISTRAL_4,
    QWEN_36,
    WHOLE,
    Tensors,
    awq,
    fp8,
    gpt_oss,
    gptq,
    linear,
    llama,
    mistral_4,
    modelopt,
    nvfp4,
    qwen_36,
    tokenizer,
    write_checkpoint,
)  # fmt: skip
from stoker.errors import Refused
from stoker.facts.model.read import read_digest, read_model
from stoker.records import CacheLayers
from support import DEMO, fails

SMALL: dict[str, Any] = {**LLAMA, "num_hidden_layers": 2, "vocab_size": 1024}
# 2 * 1,024 * 4,096 + 4,096 + 2 * (218,103,808 of matrices + 2 * 4,096)
SMALL_MATRICES = 2 * (2 * 4096 * 4096 + 2 * 1024 * 4096 + 3 * 14336 * 4096)
SMALL_PARAMETERS = 2 * 1024 * 4096 + 4096 + SMALL_MATRICES + 2 * 2 * 4096


def test_a_llama_in_bf16_is_counted_to_the_last_parameter(tmp_path: Path) -> None:
    model = read_model(write_checkpoint(tmp_path / "llama", llama(LLAMA), LLAMA, shards=4, **WHOLE))
    assert (model.parameters, model.active_parameters) == (LLAMA_PARAMETERS, LLAMA_PARAMETERS)
    assert model.bytes_by_type == {"BF16": 2 * LLAMA_PARAMETERS}
    assert model.file_bytes == sum(file.stat().st_size for file in (tmp_path / "llama").glob("*.safetensors"))
    assert (model.architecture, model.model_type, model.format) == ("LlamaForCausalLM", "llama", "safetensors")
    assert (model.quantisation, model.layers, model.hidden_size, model.vocabulary_size) == ("bf16", 32, 4096, 128256)
    # 32 layers * 8 heads * 128 for keys and for values, 2 bytes each
    assert model.cache == (CacheLayers("full", 32, 32 * 8 * 128 * 2),)
    assert model.kv_bytes_per_token == 131_072
    # Llama's factor of 8 is already in the length that is stated
    assert model.context_tokens == 131_072
    assert (model.experts, model.draft_layers, model.has_vision, model.is_draft_head) == (None, 0, False, False)
    assert (model.missing, model.problems, model.layouts) == ((), (), ("transformers",))


def test_the_demo_model_in_its_first_form_is_the_one_in_the_gguf() -> None:
    folder, gguf = read_model(DEMO.parent / "hf"), read_model(DEMO)
    assert folder.parameters == gguf.parameters
    assert (folder.kv_bytes_per_token, folder.cache) == (gguf.kv_bytes_per_token, gguf.cache)
    assert (folder.context_tokens, folder.layers, folder.hidden_size) == (gguf.context_tokens, gguf.layers, gguf.hidden_size)
    assert (folder.vocabulary_size, folder.has_chat_template) == (gguf.vocabulary_size, True)
    assert folder.template_features == gguf.template_features


def test_mistral_small_4_in_nvfp4_is_119_billion_parameters_in_71_gigabytes(tmp_path: Path) -> None:
    folder = write_checkpoint(
        tmp_path / "m", mistral_4(), shards=13, stem="consolidated", params__json=MISTRAL_4, tekken__json={"vocab": []}
    )
    model = read_model(folder)
    # A layer: MLA 4,096*1,024 + 1,024*4,096 + 320*4,096 + 256*6,144 + 4,096*4,096, its router 128*4,096, 129 experts of
    # 3*2,048*4,096 each
    experts = 36 * 128 * 3 * 2048 * 4096
    rest = 36 * (28_049_408 + 524_288 + 3 * 2048 * 4096) + 2 * 131072 * 4096 + 4096
    vision = 1024 * 588
    assert model.parameters == experts + rest + vision == 118_973_087_744
    assert model.active_parameters == rest + experts * 4 // 128 == 6_632_247_296
    assert model.bytes_by_type["U8"] == experts // 2
    assert model.bytes_by_type["F8_E4M3"] == experts // 16
    assert 71_200_000_000 < model.file_bytes < 71_300_000_000
    assert (model.quantisation, model.experts, model.experts_per_token) == ("nvfp4", 128, 4)
    assert model.cache == (CacheLayers("mla", 36, 36 * (256 + 64)),)
    assert model.kv_bytes_per_token == 23_040
    assert (model.context_tokens, model.has_vision) == (1_048_576, True)
    assert (model.layouts, model.template_features) == (("mistral",), ())


def test_thirteen_shards_of_a_large_model_are_read_in_no_time(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m", mistral_4(), shards=13, stem="consolidated", params__json=MISTRAL_4)
    times_s = []
    for _ in range(3):
        began_s = perf_counter()
        read_model(folder)
        times_s.append(perf_counter() - began_s)
    assert min(times_s) < 1.0  # 0.13 s on a quiet machine; the true limit is held by the benchmarks


def test_gpt_oss_counts_its_blocks_unpacked_and_its_window_apart(tmp_path: Path) -> None:
    model = read_model(write_checkpoint(tmp_path / "m", gpt_oss(), GPT_OSS, shards=3, **WHOLE))
    experts = 36 * 128 * (5760 * 2880 + 5760 + 2880 * 2880 + 2880)
    rest = 36 * (2 * 4096 * 2880 + 2 * 512 * 2880 + 128 * 2880) + 2 * 201088 * 2880
    assert model.parameters == experts + rest
    assert model.active_parameters == rest + experts // 32
    assert (model.quantisation, model.experts, model.experts_per_token) == ("mxfp4", 128, 4)
    each = 18 * 8 * 64 * 2
    assert model.cache == (CacheLayers("window", 18, each, window_tokens=128), CacheLayers("full", 18, each))
    assert model.kv_bytes_per_token == 2 * each == 36_864
    assert model.context_tokens == 131_072  # 32 * 4,096 by YaRN, and as stated


def test_qwen_36_keeps_a_state_brings_a_draft_layer_and_sees(tmp_path: Path) -> None:
    model = read_model(write_checkpoint(tmp_path / "m", qwen_36(), QWEN_36, shards=2, **WHOLE))
    # A convolution of 3 inputs of 2*16*128 + 32*128 in 16 bits; a state of 32 heads of 128 by 128 in 32 bits
    state_bytes = 30 * (3 * 8192 * 2 + 32 * 128 * 128 * 4)
    assert model.cache == (CacheLayers("state", 30, state_bytes=state_bytes), CacheLayers("full", 10, 10 * 2 * 256 * 2))
    assert model.kv_bytes_per_token == 20_480
    assert (model.draft_layers, model.has_vision, model.experts, model.experts_per_token) == (1, True, 256, 8)
    assert (model.layers, model.context_tokens, model.model_type) == (40, 262_144, "qwen3_5_moe")
    assert model.problems == ()


def test_what_drafts_and_what_sees_is_no_part_of_what_a_token_passes_through(tmp_path: Path) -> None:
    tensors = qwen_36()
    without = {name: kept for name, kept in tensors.items() if "mtp" not in name and "visual" not in name}
    model = read_model(write_checkpoint(tmp_path / "whole", tensors, QWEN_36, **WHOLE))
    bare = read_model(write_checkpoint(tmp_path / "bare", without, QWEN_36, **WHOLE))
    assert model.active_parameters == bare.active_parameters
    assert (model.parameters or 0) - (bare.parameters or 0) > 800_000_000


def test_a_release_that_dropped_its_draft_layer_says_so(tmp_path: Path) -> None:
    model = read_model(write_checkpoint(tmp_path / "m", qwen_36(with_draft=False), QWEN_36, **WHOLE))
    assert model.draft_layers == 0
    assert model.problems == ("its config names draft layers (MTP: 1), and no tensor of them is in the files",)


def test_deepseeks_draft_layer_is_the_one_past_the_last(tmp_path: Path) -> None:
    config = {
        "architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "hidden_size": 7168,
        "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128, "kv_lora_rank": 512,
        "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 256, "num_experts_per_tok": 8,
        "num_nextn_predict_layers": 1, "max_position_embeddings": 163840, "vocab_size": 129280,
        "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
    }  # fmt: skip
    tensors = fp8("model.layers.60.mlp.experts.0.up_proj", 2048, 7168) | fp8("model.layers.61.eh_proj", 7168, 14336)
    model = read_model(write_checkpoint(tmp_path / "m", tensors, config, **WHOLE))
    assert (model.draft_layers, model.quantisation) == (1, "fp8")
    assert model.cache == (CacheLayers("mla", 61, 61 * 576),)
    assert model.active_parameters == 2048 * 7168 * 8 // 256
    assert model.parameters == 2048 * 7168 + 7168 * 14336


@pytest.mark.parametrize(
    ("pack", "settings", "quantisation"),
    [
        (linear, None, "bf16"),
        (nvfp4, None, "nvfp4"),
        (modelopt, {"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_scheme": None}, "nvfp4"),
        (gptq, {"quant_method": "gptq", "bits": 4, "group_size": 128}, "gptq"),
        (awq, {"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm"}, "awq"),
        (fp8, {"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8"),
    ],
)
def test_however_weights_are_packed_there_are_as_many(
    tmp_path: Path, pack: Any, settings: dict[str, Any] | None, quantisation: str
) -> None:
    config = {**SMALL, "quantization_config": settings} if settings else SMALL
    model = read_model(write_checkpoint(tmp_path / "m", llama(SMALL, pack), config, **WHOLE))
    assert model.parameters == SMALL_PARAMETERS
    assert model.quantisation == quantisation


def test_two_bits_in_a_word_are_sixteen_weights(tmp_path: Path) -> None:
    tensors: Tensors = {"model.layers.0.mlp.up_proj.qweight": ("I32", (16, 64))}
    config = {**SMALL, "quantization_config": {"quant_method": "gptq", "bits": 2}}
    assert read_model(write_checkpoint(tmp_path / "m", tensors, config, **WHOLE)).parameters == 16 * 64 * 16


def test_four_bits_kept_in_signed_bytes_are_two_to_a_byte(tmp_path: Path) -> None:
    tensors: Tensors = {
        "layers.0.ffn.experts.0.w1.weight": ("I8", (64, 32)),
        "layers.0.ffn.experts.0.w1.scale": ("U8", (64, 2)),
    }
    model = read_model(write_checkpoint(tmp_path / "m", tensors, {**SMALL, "expert_dtype": "fp4"}, **WHOLE))
    assert model.parameters == 64 * 64


def test_a_gemma_nests_its_words_slides_five_times_in_six_and_sees(tmp_path: Path) -> None:
    config = {  # Gemma 3 4B: the published file leaves heads, width and pattern to Transformers' defaults
        "architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3",
        "text_config": {"model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 34, "sliding_window": 1024,
                        "rope_scaling": {"factor": 8.0, "rope_type": "linear"}},
        "vision_config": {"model_type": "siglip_vision_model"},
    }  # fmt: skip
    tensors = linear("language_model.model.embed_tokens", 64, 2560) | linear("vision_tower.patch", 16, 16)
    model = read_model(write_checkpoint(tmp_path / "m", tensors, config, **WHOLE))
    each = 4 * 256 * 2
    assert model.cache == (CacheLayers("window", 29, 29 * each, window_tokens=1024), CacheLayers("full", 5, 5 * each))
    assert (model.kv_bytes_per_token, model.context_tokens, model.has_vision) == (2 * 5 * each, 131_072, True)
    assert (model.parameters, model.active_parameters) == (64 * 2560 + 256, 64 * 2560)


@pytest.mark.parametrize(
    ("config", "tensors", "architecture"),
    [
        ({**SMALL, "architectures": ["LlamaForCausalLMEagle3"]}, {}, "LlamaForCausalLMEagle3"),
        ({**SMALL, "architectures": ["EagleMistralLarge3ForCausalLM"]}, {}, "EagleMistralLarge3ForCausalLM"),
        ({**SMALL, "architectures": ["DFlashDraftModel"], "model_type": "qwen3"}, {}, "DFlashDraftModel"),
        (SMALL, {"eagle_linear.weight": ("BF16", (8, 16))}, "EagleLlamaForCausalLM"),
    ],
)
def test_a_draft_head_is_known_as_one_and_needs_no_tokenizer(
    tmp_path: Path, config: dict[str, Any], tensors: dict[str, Any], architecture: str
) -> None:
    model = read_model(write_checkpoint(tmp_path / "m", {**linear("fc", 8, 16), **tensors}, config))
    assert (model.architecture, model.is_draft_head) == (architecture, True)
    assert (model.missing, model.layouts) == ((), ("transformers",))


def test_the_head_of_mistrals_own_format_is_known_by_its_tensor(tmp_path: Path) -> None:
    tensors = linear("eagle_linear", 4096, 8192) | linear("layers.0.attention.wo", 64, 64)
    params = {**MISTRAL_4, "n_layers": 1, "vision_encoder": None}
    model = read_model(write_checkpoint(tmp_path / "m", tensors, stem="consolidated", params__json=params))
    assert (model.architecture, model.is_draft_head) == ("EagleMistralLarge3ForCausalLM", True)
    assert [file.name for file in model.missing] == ["config.json"]


def test_experts_whose_share_is_not_said_leave_the_active_ones_unknown(tmp_path: Path) -> None:
    tensors = linear("model.layers.0.mlp.experts.0.up_proj", 8, 8)
    model = read_model(write_checkpoint(tmp_path / "m", tensors, {**SMALL, "num_experts": 64}, **WHOLE))
    assert (model.parameters, model.active_parameters) == (64, None)
    claims_more = {**SMALL, "num_experts": 4, "num_experts_per_tok": 8}
    assert read_model(write_checkpoint(tmp_path / "n", tensors, claims_more, **WHOLE)).active_parameters is None


def test_a_file_of_weights_stands_for_its_folder(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m", llama(SMALL), SMALL, **WHOLE)
    assert read_model(folder / "model.safetensors") == read_model(folder)


def test_weights_in_both_layouts_are_one_model(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m", llama(SMALL), SMALL, shards=2, **WHOLE)
    write_checkpoint(folder, llama(SMALL), stem="consolidated", params__json={"dim": 4096}, tekken__json={"vocab": []})
    model = read_model(folder)
    assert (model.parameters, model.layouts) == (SMALL_PARAMETERS, ("transformers", "mistral"))


def test_pickled_weights_are_not_read_since_reading_runs_them(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"PK")
    with fails(Refused, "there is no model in", "its weights are pickled"):
        read_model(tmp_path)


def test_an_index_without_any_of_its_files_is_no_model(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m", llama(SMALL), SMALL, shards=2, **WHOLE)
    for file in folder.glob("*.safetensors"):
        file.unlink()
    with fails(Refused, "there are no weights in", "2 files should hold them and none is there"):
        read_model(folder)


def test_a_folder_whose_only_file_is_broken_is_refused_for_what_is_broken(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m", llama(SMALL), SMALL, **WHOLE)
    (folder / "model.safetensors").write_bytes(b"{" * 100)
    with fails(Refused, "model.safetensors is damaged", "its header claims"):
        read_model(folder)


def test_the_digest_changes_with_a_shard_and_with_what_lies_beside(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m", llama(SMALL), SMALL, shards=2, **WHOLE)
    digest = read_model(folder).digest
    assert digest == read_digest(folder) == read_model(folder).digest
    for name in ("model-00002-of-00002.safetensors", "tokenizer.json", "chat_template.jinja"):
        content = (folder / name).read_bytes()
        with (folder / name).open("r+b") as file:
            file.seek(-1, 2)
            file.write(b"~")
        assert read_digest(folder) != digest
        (folder / name).write_bytes(content)
    assert read_digest(folder) == digest


@pytest.mark.parametrize("damaged", ["config.json", "params.json", "tokenizer.json", "tokenizer_config.json", "tekken.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'"x"', b"\xff\xff", b"[" * 100_000, b'{"vocab": 3, "model": 4}'])
def test_a_damaged_file_beside_the_weights_is_survived(tmp_path: Path, damaged: str, content: bytes) -> None:
    folder = write_checkpoint(tmp_path / "m", linear("a", 8, 8), SMALL, **WHOLE)
    (folder / damaged).write_bytes(content)
    model = read_model(folder)
    assert model.parameters == 64


@pytest.mark.parametrize("damaged", ["config.json", "params.json", "tokenizer.json", "tokenizer_config.json", "tekken.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xff", b"[" * 100_000])
def test_a_damaged_file_is_named(tmp_path: Path, damaged: str, content: bytes) -> None:
    folder = write_checkpoint(tmp_path / "m", linear("a", 8, 8), SMALL, **WHOLE)
    for beside in ("config.json", "tokenizer.json"):  # others are read where these are not there
        if damaged in ("params.json", "tekken.json"):
            (folder / beside).unlink()
    (folder / damaged).write_bytes(content)
    assert any(problem.startswith(damaged) for problem in read_model(folder).problems)


def test_a_config_of_nonsense_gives_unknowns_and_no_traceback(tmp_path: Path) -> None:
    keys = [*LLAMA, "layer_types", "sliding_window", "quantization_config", "text_config"]
    values: list[Any] = [-1, True, "x", [], {}, 2**80, [{}], 1.5, None]
    for value in values:
        model = read_model(write_checkpoint(tmp_path / "m", linear("a", 8, 8), dict.fromkeys(keys, value), **WHOLE))
        assert (model.layers, model.cache, model.kv_bytes_per_token, model.context_tokens) == (None, (), None, None)
        assert model.architecture


def test_infinity_in_a_config_is_read_as_transformers_writes_it(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m", linear("a", 8, 8), **WHOLE)
    (folder / "config.json").write_text('{"time_step_limit": [0.0, Infinity], "num_hidden_layers": 3}')
    assert read_model(folder).layers == 3


def test_two_releases_with_one_vocabulary_can_draft_for_each_other(tmp_path: Path) -> None:
    beside = {**WHOLE, "tokenizer__json": tokenizer(9)}
    one, other, third = (
        read_model(write_checkpoint(tmp_path / name, linear("a", 8, 8), SMALL, **files))
        for name, files in (("one", WHOLE), ("other", WHOLE), ("third", beside))
    )
    assert one.vocabulary_hash == other.vocabulary_hash != third.vocabulary_hash
