"""What is planned and refused on this GPU's host is of its own facts, and other than on a GB10."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from gpu_home import SGLANG, VLLM, Engine, GpuHome, kept
from stoker.facts.machine.nvidia import read_nvidia

ENGINES = [one for one in (SGLANG, VLLM) if one.is_here]
# Of a GB10, where the processor's memory is the GPU's: whole files are read, and few kernels are compiled at once.
GB10_ALONE = {
    "sglang": {"--weight-loader-disable-mmap", "$MAX_JOBS", "$FLASHINFER_NVCC_THREADS"},
    "vllm": {"--safetensors-load-strategy", "$MAX_JOBS", "$FLASHINFER_NVCC_THREADS"},
}
# A launch of each, and what is wrong with it on a GB10 alone: a build without kernels for SM 12.1 and an image that cannot
# start there; a share of the memory that the processor needs too, and graphs of more sizes than it has room for.
LAUNCHES = {
    "sglang": "docker run lmsysorg/sglang:v0.5.6 sglang serve --model-path /m --attention-backend flashinfer",
    "vllm": "docker run vllm/vllm-openai:v0.26.0 --model /m --gpu-memory-utilization 0.95",
}
WRONG_ON_GB10 = {
    "sglang": {"sglang-attn-flashinfer-old-builds", "sglang-stable-image-invalid-device-ordinal"},
    "vllm": {"vllm-cudagraph-sizes-trim", "vllm-util-above-090"},
}
pytestmark = [
    pytest.mark.elsewhere(bool(ENGINES), "an unpacked engine (STOKER_SGLANG_SITE, STOKER_VLLM_SITE)"),
]


@pytest.fixture(params=ENGINES, ids=[one.name for one in ENGINES])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GpuHome]:
    """A Stoker with one service, which is not started."""
    engine: Engine = request.param
    with kept(GpuHome(tmp_path_factory.mktemp("plan"), engine, engine.table("plain"))) as home:
        yield home


def flags_of(view: dict[str, Any]) -> set[str]:
    """Returns the names of what a plan sets."""
    return {one["name"] for one in view["plan"]["settings"]}


def test_the_plan_is_of_this_machine_and_takes_the_cards_own_memory(home: GpuHome) -> None:
    facts, here, there = home.json("facts"), home.json("plan", "plain"), home.json("plan", "plain", "--on", "gb10")
    names = [gpu["name"] for gpu in facts["gpus"]]
    assert names == [gpu.name for gpu in read_nvidia().gpus] != []
    assert (facts["unified_memory"], facts["gpus"][0]["compute_capability"]) == (False, "9.0")
    assert flags_of(there) - flags_of(here) == GB10_ALONE[home.engine.name]
    assert flags_of(here) - flags_of(there) == set()
    assert here["plan"]["card_need_bytes"] > 0 == there["plan"]["card_need_bytes"]
    home.note("plan", "plain", gpu=names[0], left_out=sorted(GB10_ALONE[home.engine.name]))


def lint(home: GpuHome, *on: str) -> set[str]:
    """Returns the rules that forbid the engine's launch or warn of it."""
    done = home.run("lint", *on, "--json", "--", *LAUNCHES[home.engine.name].split(), code=None)
    return {one["rule"] for found in json.loads(done.stdout) for one in found["findings"] if one["level"] != "note"}


def test_what_is_wrong_with_a_launch_on_a_gb10_is_none_of_this_machines_troubles(home: GpuHome) -> None:
    on_gb10 = lint(home, "--on", "gb10") - lint(home)
    home.note("lint", "plain", on_gb10=sorted(on_gb10))
    assert on_gb10 == WRONG_ON_GB10[home.engine.name]
