"""Writes folders of safetensors as releases have them: real headers, and files that are as long and as empty as can be.

The shapes are those of published configs, where a comment names one; nothing here was downloaded.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

Tensors = dict[str, tuple[str, tuple[int, ...]]]
BITS = {"BF16": 16, "F16": 16, "F32": 32, "U8": 8, "I8": 8, "F8_E4M3": 8, "I32": 32, "I64": 64, "F4": 4, "BOOL": 8}


def header_of(tensors: Tensors) -> dict[str, Any]:
    """Returns the table of a safetensors file that holds these tensors one after the other."""
    table: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    reached = 0
    for name, (dtype, shape) in tensors.items():
        end = reached + prod(shape) * BITS[dtype] // 8
        table[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [reached, end]}
        reached = end
    return table


def write_shard(file: Path, tensors: Tensors, extra_bytes: int = 0) -> Path:
    """Writes a sparse file; `extra_bytes` makes it longer than its header says, or cuts it where negative."""
    table = header_of(tensors)
    data_bytes = max((row["data_offsets"][1] for name, row in table.items() if name != "__metadata__"), default=0)
    return write_raw(file, json.dumps(table).encode(), data_bytes + extra_bytes)


def write_raw(file: Path, table: bytes, data_bytes: int) -> Path:
    """Writes a header as it is given, and a hole as its data."""
    with file.open("wb") as out:
        out.write(len(table).to_bytes(8, "little") + table)
        out.truncate(8 + len(table) + data_bytes)
    return file


def write_checkpoint(
    folder: Path,
    tensors: Tensors,
    config: dict[str, Any] | None = None,
    *,
    shards: int = 1,
    stem: str = "model",
    **beside: dict[str, Any] | str,
) -> Path:
    """Writes weights, index, config and the files named in `beside`, where `__` stands for the point in a name."""
    folder.mkdir(parents=True, exist_ok=True)
    names = list(tensors)
    step = -(-len(names) // shards)
    placed: dict[str, str] = {}
    for number in range(shards):
        file = f"{stem}.safetensors" if shards == 1 else f"{stem}-{number + 1:05}-of-{shards:05}.safetensors"
        part = {name: tensors[name] for name in names[number * step : (number + 1) * step]}
        write_shard(folder / file, part)
        placed |= dict.fromkeys(part, file)
    if shards > 1:
        total = sum(prod(shape) * BITS[dtype] // 8 for dtype, shape in tensors.values())
        index = {"metadata": {"total_size": total}, "weight_map": placed}
        (folder / f"{stem}.safetensors.index.json").write_text(json.dumps(index))
    documents = beside if config is None else {"config__json": config, **beside}
    for name, content in documents.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / name.replace("__", ".")).write_text(text)
    return folder


def tokenizer(tokens: int = 8, **changes: Any) -> dict[str, Any]:
    """Returns a tokenizer.json of so many tokens."""
    vocab = {f"t{number}": number for number in range(tokens)}
    return {"version": "1.0", "added_tokens": [], "model": {"type": "BPE", "vocab": vocab, "merges": []}, **changes}


WHOLE: dict[str, Any] = {
    "tokenizer__json": tokenizer(),
    "tokenizer_config__json": {"tokenizer_class": "PreTrainedTokenizerFast"},
    "chat_template__jinja": "{% for m in messages %}{{ m.content }}{% endfor %}",
}  # fmt: skip


def linear(name: str, rows: int, columns: int) -> Tensors:
    """A matrix of 16 bits."""
    return {f"{name}.weight": ("BF16", (rows, columns))}


def nvfp4(name: str, rows: int, columns: int) -> Tensors:
    """A matrix as compressed-tensors packs it into NVFP4: blocks of 16 with a scale each, and one for all."""
    return {
        f"{name}.weight_packed": ("U8", (rows, columns // 2)),
        f"{name}.weight_scale": ("F8_E4M3", (rows, columns // 16)),
        f"{name}.weight_global_scale": ("F32", (1,)),
        f"{name}.input_global_scale": ("F32", (1,)),
    }


def modelopt(name: str, rows: int, columns: int) -> Tensors:
    """A matrix as ModelOpt packs it into NVFP4."""
    return {
        f"{name}.weight": ("U8", (rows, columns // 2)), f"{name}.weight_scale": ("F8_E4M3", (rows, columns // 16)),
        f"{name}.weight_scale_2": ("F32", ()), f"{name}.input_scale": ("F32", ()),
    }  # fmt: skip


def gptq(name: str, rows: int, columns: int) -> Tensors:
    """A matrix of 4 bits as GPTQ packs it: eight rows of the transposed matrix in a word."""
    return {
        f"{name}.qweight": ("I32", (columns // 8, rows)), f"{name}.qzeros": ("I32", (columns // 128, rows // 8)),
        f"{name}.scales": ("F16", (columns // 128, rows)), f"{name}.g_idx": ("I32", (columns,)),
    }  # fmt: skip


def awq(name: str, rows: int, columns: int) -> Tensors:
    """A matrix of 4 bits as AWQ packs it: eight columns of the transposed matrix in a word."""
    return {
        f"{name}.qweight": ("I32", (columns, rows // 8)), f"{name}.qzeros": ("I32", (columns // 128, rows // 8)),
        f"{name}.scales": ("F16", (columns // 128, rows)),
    }  # fmt: skip


def fp8(name: str, rows: int, columns: int) -> Tensors:
    """A matrix in FP8 with a scale for each block of 128."""
    return {
        f"{name}.weight": ("F8_E4M3", (rows, columns)),
        f"{name}.weight_scale_inv": ("F32", (rows // 128, columns // 128)),
    }


def llama(config: dict[str, Any], pack: Callable[[str, int, int], Tensors] = linear, prefix: str = "model.") -> Tensors:
    """Returns the tensors of a dense model with grouped-query attention, as Transformers names them."""
    hidden, inner, width = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    found = linear(f"{prefix}embed_tokens", config["vocab_size"], hidden) | linear("lm_head", config["vocab_size"], hidden)
    found[f"{prefix}norm.weight"] = ("BF16", (hidden,))
    for number in range(config["num_hidden_layers"]):
        at = f"{prefix}layers.{number}."
        found |= pack(f"{at}self_attn.q_proj", heads * width, hidden) | pack(
            f"{at}self_attn.k_proj", kv_heads * width, hidden
        )
        found |= pack(f"{at}self_attn.v_proj", kv_heads * width, hidden) | pack(
            f"{at}self_attn.o_proj", hidden, heads * width
        )
        found |= pack(f"{at}mlp.gate_proj", inner, hidden) | pack(f"{at}mlp.up_proj", inner, hidden)
        found |= pack(f"{at}mlp.down_proj", hidden, inner)
        found[f"{at}input_layernorm.weight"] = found[f"{at}post_attention_layernorm.weight"] = ("BF16", (hidden,))
    return found


LLAMA: dict[str, Any] = {  # Llama 3.1 8B
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "rope_scaling": {"factor": 8.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"},
}  # fmt: skip
# 2 * 128,256 * 4,096 (embedding and head) + 4,096 (last norm)
# + 32 * (2 * 4,096 * 4,096 + 2 * 1,024 * 4,096 + 3 * 14,336 * 4,096 + 2 * 4,096)
LLAMA_PARAMETERS = 8_030_261_248

MISTRAL_4: dict[str, Any] = {  # Mistral Small 4 119B: layers, experts and MLA as published, the width of experts as well
    "dim": 4096, "n_layers": 36, "head_dim": 128, "hidden_dim": 12288, "n_heads": 32, "n_kv_heads": 32, "vocab_size": 131072,
    "norm_eps": 1e-6, "rope_theta": 10000.0, "max_position_embeddings": 1048576, "tied_embeddings": False,
    "q_lora_rank": 1024, "kv_lora_rank": 256, "qk_rope_head_dim": 64, "qk_nope_head_dim": 64, "v_head_dim": 128,
    "moe": {"num_experts": 128, "num_experts_per_tok": 4, "expert_hidden_dim": 2048, "num_shared_experts": 1,
            "first_k_dense_replace": 0, "route_every_n": 1, "routed_scale": 1.0},
    "yarn": {"factor": 128.0, "original_max_position_embeddings": 8192, "beta": 32.0, "alpha": 1.0, "apply_scale": False},
    "llama_4_scaling": {"original_max_position_embeddings": 8192, "beta": 0.1},
    "vision_encoder": {"hidden_size": 1024, "num_hidden_layers": 24, "image_size": 1540, "patch_size": 14},
    "quantization": {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized", "config_groups": {"group_0": {
        "targets": ["Linear"], "weights": {"num_bits": 4, "type": "float", "group_size": 16},
        "input_activations": {"num_bits": 4, "type": "float", "group_size": 16}}}},
}  # fmt: skip


def mistral_4(layers: int = 36, experts: int = 128, pack: Callable[[str, int, int], Tensors] = nvfp4) -> Tensors:
    """Returns the tensors of Mistral Small 4 in Mistral's own names: only routed experts are packed."""
    found = linear("tok_embeddings", 131072, 4096) | linear("output", 131072, 4096) | {"norm.weight": ("BF16", (4096,))}
    found |= linear("vision_encoder.patch_conv", 1024, 588)
    for number in range(layers):
        at = f"layers.{number}."
        found |= linear(f"{at}attention.wq_a", 1024, 4096) | linear(f"{at}attention.wq_b", 32 * 128, 1024)
        found |= linear(f"{at}attention.wkv_a_with_mqa", 320, 4096) | linear(f"{at}attention.wkv_b", 32 * 192, 256)
        found |= linear(f"{at}attention.wo", 4096, 32 * 128) | linear(f"{at}gate", experts, 4096)
        for expert in ("shared_experts", *(f"experts.{one}" for one in range(experts))):
            as_stored = linear if expert == "shared_experts" else pack
            found |= as_stored(f"{at}{expert}.w1", 2048, 4096) | as_stored(f"{at}{expert}.w3", 2048, 4096)
            found |= as_stored(f"{at}{expert}.w2", 4096, 2048)
    return found


GPT_OSS: dict[str, Any] = {  # gpt-oss 120B
    "architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880,
    "num_hidden_layers": 36, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 201088,
    "layer_types": ["sliding_attention", "full_attention"] * 18, "sliding_window": 128, "max_position_embeddings": 131072,
    "num_local_experts": 128, "num_experts_per_tok": 4, "experts_per_token": 4,
    "rope_scaling": {"factor": 32.0, "original_max_position_embeddings": 4096, "rope_type": "yarn"},
    "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]},
}  # fmt: skip


def gpt_oss(layers: int = 36) -> Tensors:
    """Returns the tensors of gpt-oss 120B: all experts of a layer in one, in blocks of 32."""
    found = linear("model.embed_tokens", 201088, 2880) | linear("lm_head", 201088, 2880)
    for number in range(layers):
        at, experts = f"model.layers.{number}.", f"model.layers.{number}.mlp.experts."
        found |= linear(f"{at}self_attn.q_proj", 4096, 2880) | linear(f"{at}self_attn.k_proj", 512, 2880)
        found |= linear(f"{at}self_attn.v_proj", 512, 2880) | linear(f"{at}self_attn.o_proj", 2880, 4096)
        found |= linear(f"{at}mlp.router", 128, 2880)
        found |= {
            f"{experts}gate_up_proj_blocks": ("U8", (128, 5760, 90, 16)),
            f"{experts}gate_up_proj_scales": ("U8", (128, 5760, 90)),
            f"{experts}gate_up_proj_bias": ("BF16", (128, 5760)),
            f"{experts}down_proj_blocks": ("U8", (128, 2880, 90, 16)),
            f"{experts}down_proj_scales": ("U8", (128, 2880, 90)),
            f"{experts}down_proj_bias": ("BF16", (128, 2880)),
        }
    return found


QWEN_36: dict[str, Any] = {  # Qwen3.6 35B-A3B
    "architectures": ["Qwen3_5MoeForConditionalGeneration"], "model_type": "qwen3_5_moe",
    "vision_config": {"depth": 27, "hidden_size": 1152},
    "text_config": {
        "model_type": "qwen3_5_moe_text", "hidden_size": 2048, "num_hidden_layers": 40, "num_attention_heads": 16,
        "num_key_value_heads": 2, "head_dim": 256, "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 10,
        "full_attention_interval": 4, "linear_conv_kernel_dim": 4, "linear_num_key_heads": 16, "linear_key_head_dim": 128,
        "linear_num_value_heads": 32, "linear_value_head_dim": 128, "mamba_ssm_dtype": "float32", "num_experts": 256,
        "num_experts_per_tok": 8, "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512,
        "vocab_size": 248320, "max_position_embeddings": 262144, "mtp_num_hidden_layers": 1,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000000, "partial_rotary_factor": 0.25},
    },
}  # fmt: skip


def qwen_36(layers: int = 4, experts: int = 256, *, with_draft: bool = True) -> Tensors:
    """Returns the tensors of Qwen3.6 35B-A3B: three layers of gated delta net for one of attention, and a draft layer."""
    found = linear("model.language_model.embed_tokens", 248320, 2048) | linear("lm_head", 248320, 2048)
    found |= linear("model.visual.blocks.0.attn.qkv", 3456, 1152)
    for number in range(layers):
        at = f"model.language_model.layers.{number}."
        if (number + 1) % 4:
            found |= linear(f"{at}linear_attn.in_proj_qkv", 8192, 2048) | linear(f"{at}linear_attn.out_proj", 2048, 4096)
        else:
            found |= linear(f"{at}self_attn.q_proj", 8192, 2048) | linear(f"{at}self_attn.k_proj", 512, 2048)
        found |= qwen_experts(at, experts)
    if with_draft:
        found |= linear("mtp.fc", 2048, 4096) | linear("mtp.layers.0.self_attn.q_proj", 8192, 2048)
        found |= qwen_experts("mtp.layers.0.", experts)
    return found


def qwen_experts(at: str, experts: int) -> Tensors:
    """Returns one layer's experts, all in one tensor, and the one that every token passes through."""
    return {
        f"{at}mlp.experts.gate_up_proj": ("BF16", (experts, 1024, 2048)),
        f"{at}mlp.experts.down_proj": ("BF16", (experts, 2048, 512)),
        f"{at}mlp.shared_expert.up_proj.weight": ("BF16", (512, 2048)),
    }
