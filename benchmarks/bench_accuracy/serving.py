"""Runs the server that knows the truth, and asks it beside a measurement."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


@contextlib.contextmanager
def truth_server() -> Iterator[str]:
    """Runs the server in a process of its own; yields its address."""
    words = [sys.executable, "-m", "benchmarks.bench_accuracy.truth_server"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()


def call(url: str, body: Any = None) -> Any:
    """Asks the server something beside the measurement."""
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data=data), timeout=30) as reply:  # noqa: S310
        return json.load(reply)
