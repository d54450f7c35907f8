"""What is said of a load, and the look at the disk before it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stoker.facts.machine.read_rate import BLOCK_BYTES, LARGE_BYTES, measure_file
from stoker.records import GIB, MIB, LoadRate
from stoker.supervise.loading import PROBE_BYTES, measure_weights, say_load

FASTER = "the loader takes the time, not the disk: `stoker rules --search loader` tells of faster ones"
CACHED = "so part of it was in memory already or read in parallel"


@pytest.mark.parametrize(
    ("load", "said"),
    [
        (
            LoadRate(66 * GIB, 606, 475_000_000),
            f"loaded 66.0 GiB in 606 s, 117 MB/s: 25 % of what the disk can (475 MB/s); {FASTER}",
        ),
        (LoadRate(60 * GIB, 30, 2_500_000_000), "loaded 60.0 GiB in 30 s, 2.1 GB/s: 86 % of what the disk can (2.5 GB/s)"),
        (LoadRate(8 * GIB, 20, None), "loaded 8.0 GiB in 20 s, 429 MB/s; what the disk can is unknown"),
        (
            LoadRate(8 * GIB, 4, 475_000_000),
            f"loaded 8.0 GiB in 4 s, 2.1 GB/s: faster than the disk was before (475 MB/s), {CACHED}",
        ),
        (LoadRate(80 * MIB, 0.2, 475_000_000), "loaded 80 MiB in less than a second"),
    ],
)
def test_a_load_is_compared_with_the_disk(load: LoadRate, said: str) -> None:
    assert say_load(load) == said


def write(file: Path, size: int) -> Path:
    with file.open("wb") as out:
        for _ in range(size // (4 * MIB)):
            out.write(os.urandom(4 * MIB))
        os.fsync(out.fileno())
    return file


def test_the_largest_file_is_read_from_its_middle_within_the_limits(tmp_path: Path) -> None:
    small, large = write(tmp_path / "small", LARGE_BYTES), write(tmp_path / "large", 2 * LARGE_BYTES)
    rate = measure_weights([small, large])
    assert rate is not None
    assert rate.path == str(large)
    assert 0 < rate.read_bytes <= min(LARGE_BYTES, PROBE_BYTES)
    assert rate.bytes_per_s > 0


def test_a_place_between_blocks_is_read_from_the_block_before_it(tmp_path: Path) -> None:
    file = write(tmp_path / "file", LARGE_BYTES)
    assert measure_file(file, limit_s=60, from_bytes=LARGE_BYTES - 1).read_bytes == BLOCK_BYTES
    assert measure_file(file, limit_s=60, from_bytes=0).read_bytes == LARGE_BYTES


def test_what_cannot_be_told_is_unknown(tmp_path: Path) -> None:
    assert measure_weights([]) is None
    assert measure_weights([tmp_path / "absent"]) is None
    assert measure_weights([write(tmp_path / "small", 4 * MIB)]) is None
    with (tmp_path / "hole").open("wb") as hole:
        hole.truncate(4 * LARGE_BYTES)
    assert measure_weights([tmp_path / "hole"]) is None
