"""Writes checkpoints of many gigabytes in the shapes of a Llama, of random weights that compute and mean nothing."""

from __future__ import annotations

import json
import os
import shutil
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from checkpoints import BITS, Tensors, linear, nvfp4, write_checkpoint

GB = 10**9
SHARD_BYTES = 5 * GB
BLOCK_BYTES, STEP = 1 << 24, 4099
NVFP4: dict[str, Any] = {
    "num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16, "symmetric": True, "dynamic": False,
}  # fmt: skip
PACKED: dict[str, Any] = {
    "quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized", "quantization_status": "compressed",
    "config_groups": {
        "group_0": {"targets": ["Linear"], "weights": NVFP4, "input_activations": {**NVFP4, "dynamic": "local"}}
    },
    "ignore": ["lm_head"],
}  # fmt: skip


class Shape(NamedTuple):
    """The sizes of a layer."""

    hidden: int
    inner: int
    heads: int
    key_heads: int
    head_dim: int = 128


LARGE, SMALL = Shape(8192, 28672, 64, 8), Shape(2048, 8192, 16, 8)  # as a Llama of 70 and of some 1.5 billion has


def write_random(folder: Path, kind: str, size_bytes: int, tokenizer: Path) -> list[Path]:
    """Writes about so many bytes as `bf16` or `nvfp4`, with the tokenizer of another model; returns the files."""
    shape = LARGE if size_bytes >= 16 * GB else SMALL
    said: dict[str, Any] = json.loads((tokenizer / "config.json").read_text())
    layer = _layer(shape, kind, 0)
    layers = max(1, size_bytes // _size(layer))
    tensors: Tensors = {"model.embed_tokens.weight": ("BF16", (said["vocab_size"], shape.hidden))}
    for number in range(layers):
        tensors |= _layer(shape, kind, number)
    tensors["model.norm.weight"] = ("BF16", (shape.hidden,))
    config = said | {
        "hidden_size": shape.hidden, "intermediate_size": shape.inner, "num_hidden_layers": layers,
        "num_attention_heads": shape.heads, "num_key_value_heads": shape.key_heads, "head_dim": shape.head_dim,
    }  # fmt: skip
    more = {"quantization_config": PACKED} if kind == "nvfp4" else {}
    write_checkpoint(folder, tensors, config | more, shards=max(2, -(-_size(tensors) // SHARD_BYTES)))
    for beside in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json"):
        if (tokenizer / beside).exists():
            shutil.copy(tokenizer / beside, folder)
    files = sorted(folder.glob("*.safetensors"))
    for file in files:
        _fill(file)
    return files


def _size(tensors: Tensors) -> int:
    return sum(int(np.prod(shape)) * BITS[dtype] // 8 for dtype, shape in tensors.values())


def _layer(shape: Shape, kind: str, number: int) -> Tensors:
    own, keys = shape.heads * shape.head_dim, shape.key_heads * shape.head_dim
    matrices = {
        "self_attn.q_proj": (own, shape.hidden), "self_attn.k_proj": (keys, shape.hidden),
        "self_attn.v_proj": (keys, shape.hidden), "self_attn.o_proj": (shape.hidden, own),
        "mlp.gate_proj": (shape.inner, shape.hidden), "mlp.up_proj": (shape.inner, shape.hidden),
        "mlp.down_proj": (shape.hidden, shape.inner),
    }  # fmt: skip
    name = f"model.layers.{number}"
    found: Tensors = {f"{name}.{norm}.weight": ("BF16", (shape.hidden,)) for norm in NORMS}
    for matrix, (rows, columns) in matrices.items():
        found |= (nvfp4 if kind == "nvfp4" else linear)(f"{name}.{matrix}", rows, columns)
    return found


NORMS = ("input_layernorm", "post_attention_layernorm")


def _fill(file: Path) -> None:
    """Writes numbers over the holes, each tensor's its own, and has the disk keep them."""
    with file.open("r+b") as out:
        head_bytes = int.from_bytes(out.read(8), "little")
        table = json.loads(out.read(head_bytes))
        for name, row in table.items():
            if name != "__metadata__":
                begin, end = row["data_offsets"]
                out.seek(8 + head_bytes + begin)
                _write_numbers(out, row["dtype"], end - begin)
        out.flush()
        os.fsync(out.fileno())


def _write_numbers(out: Any, dtype: str, size_bytes: int) -> None:
    while size_bytes > 0:
        begin = (out.tell() // 16 + out.tell() // BLOCK_BYTES * STEP) * 16 % BLOCK_BYTES  # no two blocks are alike
        raw = np.frombuffer(_pool(), np.uint8, min(BLOCK_BYTES, size_bytes), begin)
        out.write(_numbers(raw, dtype))
        size_bytes -= len(raw)


@cache
def _pool() -> bytes:
    """Returns random bytes to take blocks from: drawing 40 GB of them anew took three minutes."""
    return os.urandom(2 * BLOCK_BYTES)


def _numbers(raw: np.ndarray[Any, np.dtype[np.uint8]], dtype: str) -> np.ndarray[Any, Any]:
    """Returns random bytes as numbers that a model survives: small in 16 bits, about 1 in 8, 1 in 32."""
    if dtype == "BF16":
        return (raw.view(np.uint16) & 0x807F) | 0x3C00  # either sign, 0.008 to 0.016
    if dtype == "F8_E4M3":
        return (raw & 0x07) | 0x38  # 1 to 1.9
    return np.full(len(raw) // 4, 64.0, np.float32) if dtype == "F32" else raw
