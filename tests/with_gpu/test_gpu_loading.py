"""How fast real engines load a large checkpoint of random weights: by themselves, their fast ways, our read-ahead.

`STOKER_GPU_LOAD_GB` says how large it is: 4 where nothing is said, 40 by hand; `STOKER_GPU_LOAD_KINDS` and, with commas
between them, `STOKER_GPU_LOAD_WAYS` which of them alone.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from benchmarks.loading import drop, run_disk

from big_checkpoint import GB, write_random
from gpu_home import MODELS, SGLANG, VLLM, Engine, GpuHome, kept

ENGINES = {one.name: one for one in (SGLANG, VLLM) if one.is_here}
SIZE_BYTES = int(float(os.environ.get("STOKER_GPU_LOAD_GB", "4")) * GB)
KINDS = {"sglang": ("bf16",), "vllm": ("bf16", "nvfp4")}  # SGLang has no kernel for NVFP4 before Blackwell
PACKAGE = "fastsafetensors"  # which not every build of vLLM brings
FLAGS = {
    "sglang": {
        "its default": "", "without maps": "weight-loader-disable-mmap = true",
        "its prefetch": "weight-loader-prefetch-checkpoints = true",
    },
    "vllm": {
        "its default": "", "eager": 'safetensors-load-strategy = "eager"',
        "its prefetch": 'safetensors-load-strategy = "prefetch"',
        PACKAGE: 'load-format = "fastsafetensors"',
    },
}  # fmt: skip
NO_GRAPHS = {"sglang": "disable-cuda-graph = true", "vllm": "enforce-eager = true"}  # nothing of a load needs them
OURS = "our read-ahead"
READ_AHEAD = "read_ahead_bytes = 2147483648"
CASES = [(name, kind) for name in ENGINES for kind in os.environ.get("STOKER_GPU_LOAD_KINDS", "").split() or KINDS[name]]
pytestmark = [
    pytest.mark.elsewhere(bool(ENGINES), "an unpacked engine (STOKER_SGLANG_SITE, STOKER_VLLM_SITE)"),
    pytest.mark.long,
]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_a_cold_load_is_told_as_a_share_of_the_disk(name: str, kind: str, tmp_path: Path) -> None:
    engine = ENGINES[name]
    files = write_random(tmp_path / "model", kind, SIZE_BYTES, MODELS / "hf")
    ways = {way: ("", flags) for way, flags in FLAGS[name].items() if way != PACKAGE or Path(engine.site, PACKAGE).is_dir()}
    ways |= {OURS: (READ_AHEAD, "")}
    wanted = [way for way in os.environ.get("STOKER_GPU_LOAD_WAYS", "").split(",") if way] or list(ways)
    try:
        shares = {way: load(engine, kind, way, files, *words) for way, words in ways.items() if way in wanted}
    finally:
        shutil.rmtree(files[0].parent)  # the next kind may find no room beside it
    assert all(share > 0 for share in shares.values()), shares


def load(engine: Engine, kind: str, way: str, files: list[Path], limits: str, flags: str) -> float:
    """Loads the files from a cold disk; returns the share of the disk's rate that the loading of the weights had."""
    number = re.sub(r'"float(16|32)"', '"bfloat16"', engine.flags)
    wide = engine._replace(more="memory_share = 0.8" if engine.more else "", flags=f"{number}, {NO_GRAPHS[engine.name]}")
    folder = files[0].parent
    own = folder.parent / way.replace(" ", "-")
    own.mkdir()
    disk_rate = run_disk(files[:1])
    drop(files)
    with kept(GpuHome(own, engine, "")) as home:
        home.configure(wide.table("large", "gate = []", f", {flags}" if flags else "", folder), limits=limits)
        home.bring_up("large")
        size_bytes, weights_s = sum(file.stat().st_size for file in files), home.stages("large")["weights"]
        share = size_bytes / weights_s / disk_rate
        home.note(
            "load", way, content=kind, size_bytes=size_bytes, weights_s=weights_s, disk_mb_s=round(disk_rate / 1e6),
            share=round(share, 3),
        )  # fmt: skip
        home.run("down", "large")
    return share
