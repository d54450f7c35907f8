"""What connections cost the server of a service, told for a real engine."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from home import Home

ROOT = Path(__file__).parents[2]
WORDS = ("--streams", "2", "--connections", "50", "--turn-tokens", "1000", "--repeats", "3")


def test_what_connections_cost_is_told_beside_a_token(demo: Home) -> None:
    argv = (sys.executable, "-m", "benchmarks.connections", "demo", *WORDS)
    done = subprocess.run(argv, cwd=ROOT, env=demo.environment, capture_output=True, text=True, timeout=demo.limit_s)
    assert done.returncode == 0, done.stderr
    figures = [float(one) for one in re.findall(r"[\d.]+(?= us|%)", done.stdout)]
    token_us, open_us, close_us, low, high, middle = figures
    assert close_us >= 0 and 0 < open_us < 50 * token_us  # a token of this engine is computed by the same process
    assert low <= middle <= high
    assert middle == pytest.approx(100 * 50 * (open_us + close_us) / (1000 * token_us), rel=0.5)


def test_a_service_that_is_not_there_is_told(demo: Home) -> None:
    argv = (sys.executable, "-m", "benchmarks.connections", "nosuch", *WORDS)
    done = subprocess.run(argv, cwd=ROOT, env=demo.environment, capture_output=True, text=True, timeout=demo.limit_s)
    assert (done.returncode, done.stdout) == (1, "")
    assert "there is no service called `nosuch`" in done.stderr
    assert "Traceback" not in done.stderr
