"""What is done about the page cache before a load, and what is said of the load after it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from small_machine import NoGate
from stoker.config import LimitsConfig, Paths
from stoker.records import GIB, MIB, Endpoint, Memory, Proof, Service, Stage, State, Timeline
from stoker.supervise import guard, machine
from stoker.supervise.hands import Hands, Tools
from stoker.supervise.load_help import LoadHelp, find_weights
from stoker.supervise.starting import await_memory
from support import make_memory, make_plan

WAITS = Service(State.WAITING_FOR_MEMORY, 0.0, "you asked for it")
# 8 GiB are available, but CUDA would see the 0.5 that are free.
CACHED = msgspec.structs.replace(make_memory(8 * GIB), free_bytes=512 * MIB, page_cache_bytes=7 * GIB)


async def never(*_: object) -> None:
    """Is not asked here."""
    raise AssertionError


async def no_proof(endpoint: Endpoint) -> Proof:
    """Is not asked here."""
    raise AssertionError


def wait_for_room(folder: Path, memory: Memory, drops: bool = False, unified: bool = True) -> str:
    """Returns what a service is told when there is room for its GiB."""
    tools = Tools(
        paths=Paths(state=folder, config=folder / "stoker.toml"), limits=LimitsConfig(drop_page_cache=drops), instance="i",
        engine_key="k", read_memory=lambda: memory, is_healthy=never, prove=no_proof, gate=NoGate(),  # type: ignore[arg-type]
        in_flight=lambda service: 0, heard_at=lambda service: 0.0, read_counters=never, keep_start=lambda start: None,
        cuda_counts_cache=lambda: unified, has_gpu=lambda: True,
    )  # fmt: skip
    event = asyncio.run(await_memory(Hands(make_plan(), tools, lambda: None), WAITS))
    assert isinstance(event, machine.MemoryFree)
    return event.why


def test_page_cache_that_cuda_takes_for_used_is_named_with_what_empties_it(tmp_path: Path) -> None:
    said = wait_for_room(tmp_path, CACHED)
    assert "CUDA sees 512 MiB of it, the page cache holds the rest" in said
    assert "`drop_page_cache = true` in [limits]" in said
    assert wait_for_room(tmp_path, CACHED, unified=False) == "1.0 GiB are free for it"
    assert wait_for_room(tmp_path, make_memory(8 * GIB)) == "1.0 GiB are free for it"


def test_page_cache_is_emptied_where_that_was_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    control = tmp_path / "drop_caches"
    control.touch()
    monkeypatch.setattr(guard, "DROP_CACHES", control)
    assert wait_for_room(tmp_path, CACHED, drops=True).endswith("; the page cache was emptied for it")
    assert control.read_text() == "1\n"
    monkeypatch.setattr(guard, "DROP_CACHES", tmp_path / "no" / "such")
    assert "only root may empty it" in wait_for_room(tmp_path, CACHED, drops=True)


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    """A model's folder with weights that are large enough to be measured."""
    folder = tmp_path / "model"
    folder.mkdir()
    for number in (1, 2):
        (folder / f"model-0000{number}-of-00002.safetensors").write_bytes(os.urandom(80 * MIB))
    return folder


def loaded(seconds: float | None) -> Timeline:
    """Returns a start whose weights took so long."""
    stage = Stage("weights", 1.0, seconds, "Loading weights took 4 seconds", 160 * MIB)
    return Timeline("vllm", None, 0.0, True, 9.0, None, (stage,))


def test_a_load_is_said_beside_what_the_disk_can(weights: Path) -> None:
    help_ = LoadHelp(make_plan(model_path=str(weights)))
    asyncio.run(help_.measure())
    said = help_.say(loaded(100.0))
    assert said.startswith("loaded 160 MiB in 100 s, 2 MB/s: ")
    assert "of what the disk can" in said
    assert help_.say(loaded(None)) == ""
    assert help_.say(None) == ""


def test_weights_are_read_ahead_until_their_loader_ends_and_nothing_is_left_behind(weights: Path) -> None:
    reader = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    help_ = LoadHelp(make_plan(model_path=str(weights)))
    memory = make_memory(8 * GIB)
    help_.begin(lambda: [reader.pid], 64 * MIB, 512 * MIB, lambda: memory)
    assert help_.is_reading_ahead
    asyncio.run(help_.end())
    assert not help_.is_reading_ahead
    reader.communicate()


def test_nothing_is_read_ahead_unless_somebody_wants_it(weights: Path) -> None:
    help_ = LoadHelp(make_plan(model_path=str(weights)))
    help_.begin(lambda: [1], 0, 0, lambda: make_memory(GIB))
    assert not help_.is_reading_ahead


def test_weights_are_the_files_that_engines_load_in_their_order(weights: Path) -> None:
    (weights / "config.json").write_text("{}")
    names = [file.name for file in find_weights(make_plan(model_path=str(weights)))]
    assert names == ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    assert find_weights(make_plan(model_path="")) == []
    assert find_weights(make_plan(model_path=str(weights / "config.json"))) == [weights / "config.json"]
    assert find_weights(make_plan(model_path="/no/such/model")) == []
