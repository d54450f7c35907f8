"""The cells that are measured, and one peer's turn through them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from benchmarks.gateway.load import Load, Measured, Target
from benchmarks.gateway.peers import Cores, Peer, ask_engine
from benchmarks.gateway.processes import (
    read_busy_s,
    read_cpu_s,
    read_rss_bytes,
    start_program,
    stop_program,
    wait_until_quiet,
)

# Rates offered at the peak are streams / itl: 100, 1600, 5120, 10 000 and 10 000 chunks a second.
CELLS = {
    "1": Load(streams=1, requests=8, tokens=64, ttft_ms=20, itl_ms=10),
    "32": Load(streams=32, requests=2, tokens=64, ttft_ms=50, itl_ms=20, ramp_s=0.5),
    "256": Load(streams=256, tokens=64, ttft_ms=50, itl_ms=50, ramp_s=1),
    "1000": Load(streams=1000, tokens=48, ttft_ms=50, itl_ms=100, ramp_s=2),
    # The same once more: a gateway's and a kernel's first crowd pays for sockets and memory that are there afterwards.
    "256-again": Load(streams=256, tokens=64, ttft_ms=50, itl_ms=50, ramp_s=1),
    "4000": Load(streams=4000, tokens=32, ttft_ms=50, itl_ms=400, ramp_s=4),
    "short": Load(streams=32, requests=40, tokens=1, ttft_ms=1, itl_ms=1),  # the price of a request
    "flood": Load(streams=8, tokens=2000, ttft_ms=1, itl_ms=0),  # flat out
}
WARM_UP = Load(streams=8, requests=5, tokens=8, ttft_ms=5, itl_ms=5)
IDLE_S = 2.0
RETRY_LIMIT_S = 12.0  # a longer cell is not measured again
EXIT_LIMIT_S = 60.0


class Patience(NamedTuple):
    """When a cell counts as disturbed by other programs, and what is done about it."""

    foreign_cores: float
    tries: int
    quiet_s: float
    cell_s: float


class Cell(msgspec.Struct):
    """One cell, measured; `foreign_cores` were kept busy by programs that are not ours."""

    measured: Measured
    foreign_cores: float
    engine_late_us: dict[str, float]


class Turn(msgspec.Struct):
    """One peer's turn."""

    peer: str
    ready_s: float = 0.0
    idle_rss_bytes: int = 0
    processes: int = 0
    cells: dict[str, Cell] = {}
    after_rss_bytes: int = 0
    stop_s: float | None = None
    failed: str | None = None


def take_turn(name: str, start: Callable[[], Peer], cells: list[str], cores: Cores, patience: Patience) -> Turn:
    """Starts a peer, measures it, and ends it; one that fails says so and ends no other's turn."""
    turn = Turn(name)
    try:
        peer = start()
    except (OSError, RuntimeError, subprocess.SubprocessError) as problem:
        turn.failed = f"{type(problem).__name__}: {problem}"
        return turn
    try:
        _measure(peer, turn, cells, cores, patience)
    except (OSError, RuntimeError, subprocess.SubprocessError, msgspec.MsgspecError) as problem:
        turn.failed = f"{type(problem).__name__}: {problem}"
    finally:
        turn.stop_s = peer.stop()
    return turn


def _measure(peer: Peer, turn: Turn, cells: list[str], cores: Cores, patience: Patience) -> None:
    turn.ready_s = peer.ready_s
    time.sleep(IDLE_S)  # what is idle is measured, after what a start leaves behind
    turn.processes, turn.idle_rss_bytes = len(peer.pids()), read_rss_bytes(peer.pids())
    run_load(peer, WARM_UP, cores, patience.cell_s)
    for name in cells:
        turn.cells[name] = _least_disturbed(peer, CELLS[name], cores, patience)
        print(f"  {peer.name:14} {name:>6}  {brief(turn.cells[name])}", file=sys.stderr, flush=True)
    turn.after_rss_bytes = read_rss_bytes(peer.pids())


def _least_disturbed(peer: Peer, load: Load, cores: Cores, patience: Patience) -> Cell:
    best: Cell | None = None
    for _ in range(patience.tries):
        wait_until_quiet(patience.quiet_s)
        cell = measure_cell(peer, load, cores, patience.cell_s)
        best = cell if best is None or cell.foreign_cores < best.foreign_cores else best
        if best.foreign_cores <= patience.foreign_cores or cell.measured.wall_s > RETRY_LIMIT_S:
            break
    if best is None:
        raise ValueError("a cell is tried at least once")
    return best


def measure_cell(peer: Peer, load: Load, cores: Cores, max_s: float) -> Cell:
    """Measures one cell, and what else used the processors meanwhile."""
    ask_engine(peer, "/mock/reset")
    engine_before_s, busy_before_s, gateway_before_s = (
        ask_engine(peer, "/mock/stats")["cpu_s"], read_busy_s(), read_cpu_s(peer.pids()),
    )  # fmt: skip
    begun_s = time.monotonic()
    measured = run_load(peer, load, cores, max_s)
    stats, wall_s = ask_engine(peer, "/mock/stats"), time.monotonic() - begun_s
    ours_s = stats["cpu_s"] - engine_before_s + measured.client_cpu_s + read_cpu_s(peer.pids()) - gateway_before_s
    return Cell(measured, max(0.0, read_busy_s() - busy_before_s - ours_s) / wall_s, stats["late_us"])


def run_load(peer: Peer, load: Load, cores: Cores, max_s: float) -> Measured:
    """Runs the load generator in a process of its own."""
    target = Target(peer.port, peer.pids(), peer.headers)
    asked = [msgspec.json.encode(what).decode() for what in (target, load)]
    words = [sys.executable, "-m", "benchmarks.gateway.load", *asked, "--max-s", str(max_s)]
    process = start_program(words, core=cores.client, output=subprocess.PIPE)
    try:
        raw, _ = process.communicate(timeout=max_s + EXIT_LIMIT_S)
    finally:
        stop_program(process)
    if process.returncode:
        raise RuntimeError(f"the load generator ended with {process.returncode}: {json.dumps(asked)}")
    return msgspec.json.decode(raw, type=Measured)


def cpu_ms_per_1000_chunks(measured: Measured) -> float | None:
    """Returns the gateway's processor time for a thousand chunks."""
    return measured.cpu_s * 1e6 / measured.chunks if measured.chunks else None


def brief(cell: Cell) -> str:
    """Returns a line for whoever watches."""
    seen = cell.measured
    transit, ttft = seen.transit_us or {}, seen.ttft_us or {}
    return (
        f"chunk p50 {transit.get('p50', 0):8.0f} p99 {transit.get('p99', 0):9.0f} us | "
        f"TTFT p50 {ttft.get('p50', 0):8.0f} us | "
        f"{seen.chunks / seen.wall_s:7.0f}/s x{seen.stretch:.2f} | CPU {cpu_ms_per_1000_chunks(seen) or 0:.1f} ms/1000 | "
        f"RSS {seen.rss_peak_bytes / 2**20:.0f} MiB | errors {sum(seen.errors.values())}, unfinished {seen.unfinished} | "
        f"others {cell.foreign_cores:.2f}"
    )
