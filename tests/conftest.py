"""Fixtures that several folders share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from home import Home


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A Stoker of its own; the test fails where it leaves an engine behind."""
    home = Home(tmp_path)
    yield home
    assert home.end() == {}


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A Stoker that serves the demo model with the real engine, shared by tests that change nothing."""
    home = Home(tmp_path_factory.mktemp("demo"))
    home.run("up")
    yield home
    assert home.end() == {}
