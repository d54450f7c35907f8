"""How fast the processor reads its memory."""

from __future__ import annotations

import time

import psutil
import pytest

from stoker.facts.machine.memory_rate import LEAST_BYTES, SHARE_OF_FREE, measure_memory_rate
from stoker.records import MIB


def one_thread_bytes_per_s() -> float:
    """Returns how fast one thread looks through memory, by a way of Python's own; the best of three."""
    block, took_s = b"\x01" * (256 * MIB), []
    for _ in range(3):
        began = time.perf_counter()
        assert block.find(b"\x02") < 0
        took_s.append(time.perf_counter() - began)
    return len(block) / min(took_s)


def test_all_processors_together_read_no_slower_than_half_of_one() -> None:
    free_bytes = psutil.virtual_memory().available
    if free_bytes < 1024 * MIB:
        pytest.skip("too little memory is free")
    rate = measure_memory_rate(free_bytes)
    assert rate is not None
    assert rate > one_thread_bytes_per_s() / 2


def test_too_little_free_memory_is_not_measured() -> None:
    assert measure_memory_rate(LEAST_BYTES * SHARE_OF_FREE - 1) is None


def test_the_memory_is_given_back() -> None:
    process = psutil.Process()
    measure_memory_rate(LEAST_BYTES * SHARE_OF_FREE, limit_s=0)
    before_bytes = process.memory_info().rss
    measure_memory_rate(LEAST_BYTES * SHARE_OF_FREE, limit_s=0)
    assert process.memory_info().rss - before_bytes < LEAST_BYTES / 2
