"""Small models as their makers release them."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import checkpoints
from home import Home
from small_hub import Hub

CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 256, "num_hidden_layers": 4,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 512, "intermediate_size": 512, "head_dim": 64,
    "max_position_embeddings": 2048,
}  # fmt: skip
BESIDE: dict[str, Any] = {
    "tokenizer__json": checkpoints.tokenizer(),
    "tokenizer_config__json": {"chat_template": "{{ messages }}", "tokenizer_class": "X"},
}
EXTRA = {"README.md": b"---\nlicense: mit\n---\n", "pytorch_model.bin": b"pickle" * 999, "picture.png": b"png" * 99}
REPOSITORY = "org/tiny"
BASE, NVFP4 = "org/Tiny-1B", "org/Tiny-1B-NVFP4"


def write_release(folder: Path, shards: int = 2, **beside: Any) -> Path:
    """Writes a whole model whose weights differ from byte to byte."""
    checkpoints.write_checkpoint(folder, checkpoints.llama(CONFIG), CONFIG, shards=shards, **{**BESIDE, **beside})
    for file in folder.glob("*.safetensors"):
        content = bytearray(file.read_bytes())
        begin = 8 + int.from_bytes(content[:8], "little")
        content[begin:] = os.urandom(len(content) - begin)
        file.write_bytes(content)
    return folder


def add_release(hub: Hub, tmp_path: Path, name: str = REPOSITORY, **more: Any) -> tuple[Path, str]:
    """Puts a whole model with extras on the hub; returns its folder and commit."""
    folder = write_release(tmp_path / name.replace("/", "-"), **more)
    for extra, content in EXTRA.items():
        (folder / extra).write_bytes(content)
    return folder, hub.add_folder(name, folder)


def snapshot(home: Home, commit: str, name: str = REPOSITORY) -> Path:
    """Where the hub's cache has a commit."""
    return Path(home.environment["HF_HOME"]) / "hub" / f"models--{name.replace('/', '--')}" / "snapshots" / commit


def sha256(file: Path) -> str:
    """The name under which the hub's cache keeps a large file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def add_incomplete(hub: Hub, tmp_path: Path) -> tuple[str, str, Path]:
    """Puts a release without tokenizer on the hub, and its base; returns both commits and the base's folder."""
    base = write_release(tmp_path / "base", shards=1)
    commit = hub.add_folder(BASE, base)
    folder = write_release(tmp_path / "nvfp4", shards=1)
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").unlink()
    (folder / "README.md").write_text(f"---\nbase_model: {BASE}\n---\n")
    return hub.add_folder(NVFP4, folder), commit, base
