"""`stoker check`: whether a model's files are whole, and what loads them."""

from __future__ import annotations

import json
from pathlib import Path

import checkpoints
from home import Home
from stoker.config import demo_model

CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 128, "intermediate_size": 128, "head_dim": 16,
    "max_position_embeddings": 2048,
}  # fmt: skip


def write_whole(folder: Path) -> Path:
    return checkpoints.write_checkpoint(
        folder, checkpoints.llama(CONFIG), CONFIG, shards=2, tokenizer__json=checkpoints.tokenizer(),
        tokenizer_config__json={"chat_template": "{{ messages }}", "tokenizer_class": "X"},
    )  # fmt: skip


def test_a_whole_folder_is_whole_and_says_what_loads_it(home: Home, tmp_path: Path) -> None:
    said = home.run("check", str(write_whole(tmp_path / "tiny"))).stdout
    assert "sglang, vllm" in said
    assert said.rstrip().endswith("whole")


def test_the_demo_is_whole_for_llama_cpp(home: Home) -> None:
    view = home.json("check", str(demo_model()))
    assert view["loads_in"] == ["llamacpp"]
    assert view["is_whole"] is True


def test_what_is_missing_is_named_with_where_it_comes_from(home: Home, tmp_path: Path) -> None:
    folder = write_whole(tmp_path / "Tiny-1B-NVFP4")
    (folder / "tokenizer.json").unlink()
    (folder / "README.md").write_text("---\nbase_model: org/Tiny-1B\n---\n")
    done = home.run("check", str(folder), code=1)
    assert "tokenizer.json" in done.stdout
    assert "org/Tiny-1B" in done.stdout
    assert "not whole" in done.stdout


def test_a_shard_that_was_cut_short_is_named_and_nothing_loads_it(home: Home, tmp_path: Path) -> None:
    folder = write_whole(tmp_path / "cut")
    shard = sorted(folder.glob("*.safetensors"))[1]
    with shard.open("r+b") as file:
        file.truncate(shard.stat().st_size - 10)
    view = json.loads(home.run("check", str(folder), "--json", code=1).stdout)
    assert view["loads_in"] == []
    assert shard.name in " ".join(view["model"]["problems"])


def test_nothing_to_check_is_refused(home: Home, tmp_path: Path) -> None:
    assert "there is no model" in home.run("check", str(tmp_path / "gone"), code=3).stderr
