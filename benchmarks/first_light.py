"""Measures what a newcomer feels: `stoker up` to the first token, the quick verbs, and what the idle daemon holds.

    python benchmarks/first_light.py --runs 10 [--json FILE]

Prints median, lowest and highest of each. A run of `up` begins without daemon and engine, on a warm environment (files in
the page cache), and ends when the command does, after an answer through the gateway. Nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

MIB = 1024**2
RSS_SETTLE_S = 2.0


class Row(NamedTuple):
    """One thing measured: all its values, in its unit."""

    what: str
    unit: str
    target: float
    values: list[float]


def stoker(environment: dict[str, str], *words: str) -> tuple[float, str]:
    """Runs a verb; returns its wall-clock seconds and what it printed."""
    begun = time.perf_counter()
    argv = [sys.executable, "-P", "-m", "stoker", *words]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True, timeout=120)
    return time.perf_counter() - begun, done.stdout


def measure_up(environment: dict[str, str], runs: int) -> tuple[Row, Row]:
    """Measures `up` from nothing, and the daemon's resident memory once it is idle."""
    seconds, resident = [], []
    for _ in range(runs):
        seconds.append(stoker(environment, "up")[0])
        time.sleep(RSS_SETTLE_S)
        daemon: dict[str, Any] = json.loads(stoker(environment, "status", "--json")[1])["daemon"]
        resident.append(daemon["memory_bytes"] / MIB)
        stoker(environment, "down")
    return Row("stoker up, to the first token", "s", 3.0, seconds), Row("idle daemon, resident", "MiB", 60.0, resident)


def measure_verbs(environment: dict[str, str], runs: int) -> tuple[Row, Row]:
    """Measures `--help` and, with a daemon and a service, `status`."""
    stoker(environment, "up")
    try:
        help_ms = [stoker(environment, "--help")[0] * 1000 for _ in range(runs)]
        status_ms = [stoker(environment, "status")[0] * 1000 for _ in range(runs)]
    finally:
        stoker(environment, "down")
    return Row("stoker --help", "ms", 150.0, help_ms), Row("stoker status", "ms", 150.0, status_ms)


def render(rows: list[Row]) -> str:
    """Returns the rows as a Markdown table."""
    lines = ["| what | median | lowest | highest | runs | target |", "|---|---|---|---|---|---|"]
    for row in rows:
        cells = [f"{value:.3g} {row.unit}" for value in (statistics.median(row.values), min(row.values), max(row.values))]
        lines.append(f"| {row.what} | {' | '.join(cells)} | {len(row.values)} | under {row.target:g} {row.unit} |")
    return "\n".join(lines)


def describe_machine() -> str:
    """Returns what the numbers were measured on."""
    load = os.getloadavg()[0]
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, load before {load:.2f}"


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    machine = describe_machine()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "stoker.toml"
        config.write_text("[gateway]\nport = 0\n")
        environment = {**os.environ, "STOKER_STATE": f"{folder}/state", "STOKER_CONFIG": str(config)}
        stoker(environment, "up")
        stoker(environment, "down")
        rows = [*measure_up(environment, options.runs), *measure_verbs(environment, options.runs * 2)]
    print(f"{machine}\n\n{render(rows)}")
    if options.json:
        options.json.write_text(json.dumps({"machine": machine, "rows": [row._asdict() for row in rows]}, indent=2) + "\n")


if __name__ == "__main__":
    main()
