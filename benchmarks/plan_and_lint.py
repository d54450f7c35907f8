"""Measures `stoker plan` on a model of 13 shards and `stoker lint` on a launch, as the commands that people wait for.

    python benchmarks/plan_and_lint.py --runs 20

The shards are sparse files with real headers (36 layers of 128 packed experts); nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import checkpoints

IMAGE = "lmsysorg/sglang:nightly-dev-cu13-20260323-999bad5a"
CASE = Path(__file__).parent.parent / "tests" / "plan" / "lint_cases" / "report-sglang-in-use.sh"
CONFIG = {
    "architectures": ["Mistral4ForCausalLM"], "model_type": "mistral4", "hidden_size": 4096, "num_hidden_layers": 36,
    "num_attention_heads": 32, "num_key_value_heads": 32, "kv_lora_rank": 256, "q_lora_rank": 1024, "qk_rope_head_dim": 64,
    "n_routed_experts": 128, "num_experts_per_tok": 4, "vocab_size": 131072, "max_position_embeddings": 1048576,
    "quantization_config": {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"},
}  # fmt: skip


def write_model(folder: Path) -> Path:
    """Writes the sparse model."""
    template = {"chat_template": "{{ tools }}"}
    beside: dict[str, Any] = {"tokenizer__json": checkpoints.tokenizer(), "tokenizer_config__json": template}
    return checkpoints.write_checkpoint(
        folder / "Mistral-Small-4-NVFP4", checkpoints.mistral_4(), CONFIG, shards=13, **beside
    )


def measure(runs: int, *words: str) -> list[float]:
    """Returns the wall-clock milliseconds of each run of a verb."""
    found = []
    for _ in range(runs):
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-P", "-m", "stoker", *words], capture_output=True, check=False, timeout=120)
        found.append((time.perf_counter() - begun) * 1000)
    return found


def main() -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        model = write_model(Path(folder))
        rows = {
            "stoker plan, 13 shards (under 300 ms)": measure(runs, "plan", str(model), "--on", "gb10", "--image", IMAGE),
            "stoker lint (under 200 ms)": measure(runs, "lint", "--on", "gb10", str(CASE)),
            "stoker --help": measure(runs, "--help"),
        }
    print("| what | median | lowest | highest | runs |\n|---|---|---|---|---|")
    for what, ms in rows.items():
        print(f"| {what} | {statistics.median(ms):.0f} ms | {min(ms):.0f} ms | {max(ms):.0f} ms | {runs} |")


if __name__ == "__main__":
    main()
