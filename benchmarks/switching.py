"""Measures what a switch takes beyond the memory's own time to come back, beside a fixed wait of 60 s.

    python benchmarks/switching.py --runs 3 --release 2 10 30 [--json FILE]

Two stand-ins of one group hold memory; the one that goes gives it back little by little, over the time that is said. Its
last page and the next one's first and last moments of start are written down by the stand-ins themselves. The release ends
with the last page, or when the kernel counts nine tenths as available again if that is later, as on some virtual machines:

    overhead = READY of the next one - the end of the release - the next one's own start

Less than nothing is possible: a stop counts as settled when all but 256 MiB are back, which may be earlier.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

MIB = 1024**2
STEP_BYTES = 4 * MIB
FIXED_WAIT_S = 60.0
HOLDS_MIB = 2048
SPARE_MIB = 256
BACK_SHARE = 0.9
LOOK_S = 0.01


class Row(NamedTuple):
    """One release time: how long each switch took, and what of it was neither release nor the engine's own start."""

    asked_release_s: float
    release_s: list[float]
    total_s: list[float]
    overhead_s: list[float]


class Look(threading.Thread):
    """Watches MemAvailable until most of what is held is back."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.back_bytes = read_available() + BACK_SHARE * HOLDS_MIB * MIB
        self.back_at = 0.0
        self.start()

    def run(self) -> None:
        """Notes when it is back."""
        while read_available() < self.back_bytes:
            time.sleep(LOOK_S)
        self.back_at = time.time()


def read_available() -> int:
    """Returns MemAvailable in bytes."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))


def stand_in(notes: str, take_mib: int, release_s: float) -> None:
    """Holds memory until SIGTERM, then gives it back evenly; writes down when it began, was up, and had given all back."""
    told, file = threading.Event(), Path(notes)
    signal.signal(signal.SIGTERM, lambda *_: told.set())
    note(file, "begun")
    blocks = []
    for _ in range(take_mib * MIB // STEP_BYTES):
        block = mmap.mmap(-1, STEP_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        block[:] = b"\1" * STEP_BYTES
        blocks.append(block)
    note(file, "up")
    print("the stand-in is up", flush=True)
    told.wait()
    note(file, "told")
    begun_s, count = time.monotonic(), len(blocks)
    while blocks:
        due_s = begun_s + release_s * (count - len(blocks) + 1) / count
        time.sleep(max(0.0, due_s - time.monotonic()))
        blocks.pop().close()
    note(file, "released")


def note(file: Path, what: str) -> None:
    """Appends a moment, in seconds since the epoch."""
    with file.open("a") as out:
        out.write(f"{what} {time.time()}\n")


def read_notes(file: Path) -> dict[str, float]:
    """Returns the last moment of each kind."""
    return {what: float(at) for what, _, at in (line.partition(" ") for line in file.read_text().splitlines())}


def stoker(environment: dict[str, str], *words: str) -> str:
    """Runs a verb; returns what it printed."""
    argv = [sys.executable, "-P", "-m", "stoker", *words]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


def configure(folder: Path, release_s: float) -> None:
    """Writes a stoker.toml with two stand-ins."""
    tables = [f"[gateway]\nport = 0\n[limits]\nswitch_cooldown_s = 0\nstop_grace_s = {release_s + 30}\n"]
    for name in ("former", "next"):
        words = [sys.executable, "-P", __file__, "--stand-in", str(folder / name), str(HOLDS_MIB), str(release_s)]
        tables.append(
            f'[service.{name}]\nengine = "command"\ngroup = "one"\nprogram = {json.dumps(words)}\n'
            f'claim_gib = {(HOLDS_MIB + SPARE_MIB) / 1024}\nready_line = "the stand-in is up"\n'
        )
    (folder / "stoker.toml").write_text("\n".join(tables))


def measure(release_s: float, runs: int) -> Row:
    """Switches from one stand-in to the other, again and again."""
    row = Row(release_s, [], [], [])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        configure(folder, release_s)
        environment = {**os.environ, "STOKER_STATE": f"{name}/state", "STOKER_CONFIG": f"{name}/stoker.toml"}
        stoker(environment, "up", "former")
        try:
            for run in range(runs):
                goes, comes = ("former", "next") if run % 2 == 0 else ("next", "former")
                asked_s, look = time.time(), Look()
                stoker(environment, "switch", comes)
                former, fresh = read_notes(folder / goes), read_notes(folder / comes)
                judge(
                    row, asked_s, ready_at(environment, comes), max(look.back_at, former["released"]), former["told"], fresh
                )
        finally:
            stoker(environment, "down")
    return row


def ready_at(environment: dict[str, str], service: str) -> float:
    """Returns when a service became READY."""
    views: list[dict[str, Any]] = json.loads(stoker(environment, "status", "--json"))["services"]
    return next(float(view["since"]) for view in views if view["name"] == service and view["state"] == "READY")


def judge(row: Row, asked_s: float, ready_s: float, back_s: float, told_s: float, fresh: dict[str, float]) -> None:
    """Adds one switch to its row."""
    row.release_s.append(back_s - told_s)
    row.total_s.append(ready_s - asked_s)
    row.overhead_s.append(ready_s - back_s - (fresh["up"] - fresh["begun"]))


def render(rows: list[Row]) -> str:
    """Returns the rows as a Markdown table."""
    columns = ("memory back after", "switch to READY", "overhead")
    heads = [
        "pages given back over",
        *(f"{column}, {what}" for column in columns for what in ("median", "lowest", "highest")),
    ]
    lines = [f"| {' | '.join((*heads, f'fixed wait of {FIXED_WAIT_S:.0f} s', 'runs'))} |", "|---" * (len(heads) + 2) + "|"]
    for row in rows:
        numbers = [*spread(row.release_s), *spread(row.total_s), *spread(row.overhead_s)]
        own_s = statistics.median(row.total_s) - statistics.median(row.release_s) - statistics.median(row.overhead_s)
        fixed = f"{FIXED_WAIT_S + max(0.0, own_s):.1f} s"
        cells = [f"{row.asked_release_s:g} s", *(f"{number:.2f} s" for number in numbers), fixed, str(len(row.total_s))]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def spread(values: list[float]) -> tuple[float, float, float]:
    """Returns median, lowest and highest."""
    return statistics.median(values), min(values), max(values)


def describe_machine() -> str:
    """Returns what the numbers were measured on."""
    load = os.getloadavg()[0]
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, load before {load:.2f}"


def main() -> None:
    """Measures and prints."""
    if sys.argv[1:2] == ["--stand-in"]:
        stand_in(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--release", type=float, nargs="+", default=[2.0, 10.0, 30.0], help="seconds until it is all back")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    machine = describe_machine()
    rows = [measure(release_s, options.runs) for release_s in options.release]
    print(f"{machine}\n\n{render(rows)}")
    if options.json:
        options.json.write_text(json.dumps({"machine": machine, "rows": [row._asdict() for row in rows]}, indent=2) + "\n")


if __name__ == "__main__":
    main()
