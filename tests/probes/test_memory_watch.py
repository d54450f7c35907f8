"""The memory that is watched while a long prompt is asked."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from lying_engine import lying_engine
from probing import found, prove
from stoker.box import RecordedBox
from stoker.config import LimitsConfig
from stoker.probes.kit.memory_watch import MemoryWatch
from stoker.records import GIB, MIB, Verdict


def write_free(folder: Path, free_bytes: int) -> RecordedBox:
    """Returns a machine of 4 GiB of which so much is free; written anew, the same machine has another amount."""
    file = folder / "root" / "proc" / "meminfo"
    file.parent.mkdir(parents=True, exist_ok=True)
    kib = {"MemTotal": 4 * GIB // 1024, "MemFree": free_bytes // 1024, "MemAvailable": free_bytes // 1024}
    file.with_name("next").write_text("".join(f"{name}: {value} kB\n" for name, value in kib.items()))
    file.with_name("next").replace(file)
    return RecordedBox(folder)


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000/v1", "http://localhost:8000/v1", "http://[::1]:8000/v1"])
def test_the_lowest_memory_meanwhile_is_remembered(tmp_path: Path, url: str) -> None:
    async def run() -> MemoryWatch:
        with MemoryWatch(url, write_free(tmp_path, 2 * GIB)) as watch:
            assert watch.low_bytes == 2 * GIB
            write_free(tmp_path, 1 * GIB)
            while watch.low_bytes != 1 * GIB:
                await asyncio.sleep(0)
            write_free(tmp_path, 3 * GIB)
        return watch

    watch = asyncio.run(run())
    assert watch.low_bytes == 1 * GIB
    assert not watch.is_short
    assert str(watch) == "; 1.0 GiB of memory stayed free"


def test_less_than_the_floor_is_short(tmp_path: Path) -> None:
    async def run() -> MemoryWatch:
        floor_bytes = LimitsConfig().memory_floor_bytes
        with MemoryWatch("http://127.0.0.1:1/v1", write_free(tmp_path, floor_bytes - MIB)) as watch:
            pass
        return watch

    assert asyncio.run(run()).is_short


def test_another_machines_memory_is_unknown(tmp_path: Path) -> None:
    with MemoryWatch("http://192.0.2.1:8000/v1", write_free(tmp_path, 0)) as watch:
        pass
    assert (watch.low_bytes, watch.is_short, str(watch)) == (None, False, "")


def test_a_machine_that_does_not_tell_is_no_fault_of_the_endpoint(tmp_path: Path) -> None:
    async def run() -> MemoryWatch:
        with MemoryWatch("http://127.0.0.1:1/v1", RecordedBox(tmp_path)) as watch:
            pass
        return watch

    assert asyncio.run(run()).low_bytes is None


def test_a_long_prompt_says_how_much_memory_stayed_free() -> None:
    with lying_engine() as engine:
        verdicts = found(prove(engine.url, "long-context"))
    for place in ("beginning", "middle", "end"):
        verdict, says = verdicts[f"long-context: {place}"]
        assert verdict is Verdict.PASS
        assert says.endswith("of memory stayed free")
