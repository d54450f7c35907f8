"""A server that knows the truth, shared by tests that set its schedule."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from benchmarks.bench_accuracy.serving import truth_server


@pytest.fixture(scope="session")
def truth() -> Iterator[str]:
    """Its address."""
    with truth_server() as url:
        yield url
