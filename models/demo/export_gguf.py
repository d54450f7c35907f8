"""Converts the Hugging Face folders to GGUF with the `gguf` library."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import gguf
import layout
import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import load_file
from tokenizer import CONTROL, MARKUP, PRE_TOKENIZER

NAMES = {"target": "Stoker Demo", "draft": "Stoker Demo Draft"}
DESCRIPTIONS = {
    "target": "A tiny chat model that ships with Stoker, to try a machine without a download.",
    "draft": "Drafts tokens for Stoker Demo in speculative decoding.",
}
KINDS = {
    "F32": (gguf.GGMLQuantizationType.F32, gguf.LlamaFileType.ALL_F32),
    "F16": (gguf.GGMLQuantizationType.F16, gguf.LlamaFileType.MOSTLY_F16),
    "Q8_0": (gguf.GGMLQuantizationType.Q8_0, gguf.LlamaFileType.MOSTLY_Q8_0),
}
LAYER_TENSORS = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
Array = npt.NDArray[np.float32]


def gguf_name(name: str) -> str:
    """The GGUF name of a Hugging Face tensor, such as `blk.0.attn_q.weight`."""
    stem = name.removeprefix("model.").removesuffix(".weight")
    whole = {"embed_tokens": "token_embd", "norm": "output_norm"}
    if stem in whole:
        return f"{whole[stem]}.weight"
    _, layer, part = stem.split(".", 2)
    return f"blk.{layer}.{LAYER_TENSORS[part]}.weight"


def interleave(weight: Array, heads: int) -> Array:
    """Moves rotary pairs side by side: llama.cpp rotates neighbours where Hugging Face rotates halves."""
    rows, columns = weight.shape
    pairs = weight.reshape(heads, 2, rows // heads // 2, columns)
    return np.ascontiguousarray(pairs.swapaxes(1, 2).reshape(rows, columns))


def laid_out(name: str, weight: Array, config: dict[str, Any]) -> Array:
    """The weight in the order that llama.cpp reads it."""
    if name.endswith("attn_q.weight"):
        return interleave(weight, config["num_attention_heads"])
    if name.endswith("attn_k.weight"):
        return interleave(weight, config["num_key_value_heads"])
    return weight


def write_description(writer: gguf.GGUFWriter, role: str, kind: str, parameters: int) -> None:
    """Name, licence and size."""
    writer.add_name(NAMES[role])
    writer.add_basename("stoker-demo")
    writer.add_description(DESCRIPTIONS[role])
    writer.add_size_label(gguf.size_label(parameters, 0, 0, 0))
    writer.add_license("apache-2.0")
    writer.add_languages(["en"])
    writer.add_tags(["text-generation", "conversational"])
    writer.add_file_type(KINDS[kind][1])
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)


def write_sizes(writer: gguf.GGUFWriter, config: dict[str, Any]) -> None:
    """The hyperparameters of the `llama` architecture."""
    writer.add_vocab_size(config["vocab_size"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])


def token_type(token: str) -> gguf.TokenType:
    """Control tokens are hidden from the text, markup tokens are shown."""
    if token in CONTROL:
        return gguf.TokenType.CONTROL
    return gguf.TokenType.USER_DEFINED if token in MARKUP else gguf.TokenType.NORMAL


def write_tokenizer(writer: gguf.GGUFWriter, folder: Path) -> None:
    """Vocabulary, merges, special tokens and the chat template."""
    stored = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    vocabulary: dict[str, int] = stored["model"]["vocab"]
    tokens = sorted(vocabulary, key=vocabulary.__getitem__)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(PRE_TOKENIZER)
    writer.add_token_list(tokens)
    writer.add_token_types([token_type(token) for token in tokens])
    writer.add_token_merges([" ".join(pair) for pair in stored["model"]["merges"]])
    writer.add_eos_token_id(vocabulary["<|im_end|>"])
    writer.add_pad_token_id(vocabulary["<|endoftext|>"])
    writer.add_add_bos_token(False)
    writer.add_chat_template((folder / "chat_template.jinja").read_text())


def write_tensors(writer: gguf.GGUFWriter, weights: dict[str, torch.Tensor], kind: str, config: dict[str, Any]) -> None:
    """Every weight; norms stay float32 as llama.cpp requires."""
    for hf_name, tensor in weights.items():
        name = gguf_name(hf_name)
        weight = laid_out(name, tensor.float().numpy(), config)
        stored = KINDS[kind][0] if weight.ndim == 2 else gguf.GGMLQuantizationType.F32
        writer.add_tensor(name, gguf.quantize(weight, stored), raw_dtype=stored)


def export(role: str, kind: str, folder: Path) -> Path:
    """Writes one GGUF file beside the other models and returns its path."""
    source = layout.HF_FOLDERS[role]
    config = json.loads((source / "config.json").read_text())
    weights = load_file(str(source / "model.safetensors"))
    path = layout.gguf_path(role, kind, folder)
    writer = gguf.GGUFWriter(path, "llama")
    write_description(writer, role, kind, sum(w.numel() for w in weights.values()))
    write_sizes(writer, config)
    write_tokenizer(writer, source)
    write_tensors(writer, weights, kind, config)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def main() -> None:
    """Writes the shipped Q8_0 files, and F16 and F32 ones to the build folder for the checks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--roles", nargs="+", choices=list(NAMES), default=list(NAMES))
    args = parser.parse_args()
    layout.BUILD.mkdir(exist_ok=True)
    for role in args.roles:
        for kind in KINDS:
            path = export(role, kind, layout.HERE if kind == "Q8_0" else layout.BUILD)
            print(f"{path.relative_to(layout.HERE)}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
