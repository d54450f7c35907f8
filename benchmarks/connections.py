"""Says what connections cost the server of a service that runs, beside the tokens of a crowd, in its processor time.

    python -m benchmarks.connections SERVICE [--streams 64] [--connections 256] [--turn-tokens 32768] [--repeats 6]

The gateway opens connections anew in the pauses of a crowd. Where it and its engine asked past it take turns
(`tests/with_gpu/test_gpu_door.py`), that falls into the turn of the other side, and makes it slower by what is said here.
"""

from __future__ import annotations

import argparse
import socket
import statistics
import time
from contextlib import ExitStack
from urllib.parse import urlsplit

from benchmarks.gateway.processes import read_cpu_s
from stoker.bench.cell import Settings
from stoker.config import find_paths
from stoker.errors import StokerError
from stoker.flows.bench import Live, Wanted, bench
from stoker.flows.bench_targets import choose_service
from stoker.flows.targets import choose_service as choose_running
from stoker.records import BenchCell, BenchLoad

PROMPT_TOKENS, NEW_TOKENS, BUDGET_S, SILENCE_S = 64, 128, 60.0, 300.0
LOOK_S, IDLE = 0.2, 0.05  # of a core; an idle vLLM takes 0.002


def count_roughly(text: str) -> int:
    """Returns how many tokens a text may be, without asking the server, whose time is counted."""
    return len(text) // 4


def measure_token_us(service: str, pid: int, streams: int, repeats: int) -> list[float]:
    """Returns what a token of so many streams costs a process, crowd by crowd."""
    began_s: list[float] = []
    took_s: list[float] = []

    def begin(cell: BenchCell, text: str) -> None:
        if text.startswith("run"):
            began_s.append(read_cpu_s([pid]))

    def end(cell: BenchCell, number: int) -> None:
        took_s.append(read_cpu_s([pid]) - began_s[-1])

    target, subject = choose_service(service, direct=True)
    asked = BenchCell(PROMPT_TOKENS, NEW_TOKENS, 0, BenchLoad("closed", streams), "prose")
    settings = Settings(1, repeats, 0.05, BUDGET_S, SILENCE_S, more={"temperature": 0.0}, between=end)
    [cell] = bench(
        Wanted(target, subject, (asked,), settings, tokenizer=count_roughly), Live(lambda found: None, begin)
    ).cells
    if cell.failed:
        raise SystemExit(f"{cell.failed} requests were not answered: {cell.errors}")
    return [1e6 * one / (streams * NEW_TOKENS) for one in took_s]


def wait_until_idle(pid: int) -> None:
    """Waits until a process does next to nothing; what else the machine does is no matter."""
    end_s = time.monotonic() + SILENCE_S
    while time.monotonic() < end_s:
        before_s = read_cpu_s([pid])
        time.sleep(LOOK_S)
        if read_cpu_s([pid]) - before_s < IDLE * LOOK_S:
            return
    raise SystemExit(f"the server was not idle within {SILENCE_S:.0f} s: does somebody else ask it?")


def measure_connections_us(address: str, pid: int, count: int) -> tuple[float, float]:
    """Returns what opening and closing a connection that asks nothing costs a process, its rest beside it included."""
    url = urlsplit(address)
    with ExitStack() as stack:
        wait_until_idle(pid)
        before_s = read_cpu_s([pid])
        for _ in range(count):
            stack.enter_context(socket.create_connection((url.hostname, url.port)))
        wait_until_idle(pid)
        opened_s = read_cpu_s([pid])
    wait_until_idle(pid)
    return 1e6 * (opened_s - before_s) / count, 1e6 * (read_cpu_s([pid]) - opened_s) / count


def main() -> None:
    """Measures both, and says one as a share of the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("service")
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--connections", type=int, default=256)
    parser.add_argument("--turn-tokens", type=int, default=32768)
    parser.add_argument("--repeats", type=int, default=6)
    options = parser.parse_args()
    try:
        view = choose_running(find_paths(), options.service)
        assert view.pid is not None and view.address is not None
        token_us = statistics.median(measure_token_us(options.service, view.pid, options.streams, options.repeats))
        each = [measure_connections_us(view.address, view.pid, options.connections) for _ in range(options.repeats)]
    except StokerError as problem:
        raise SystemExit(str(problem)) from None
    shares = sorted(options.connections * sum(one) / (options.turn_tokens * token_us) for one in each)
    open_us, close_us = (statistics.median(one) for one in zip(*each, strict=True))
    print(f"{token_us:.0f} us for a token of {options.streams} streams")
    print(f"{open_us:.0f} us to open a connection, {close_us:.0f} us to close it")
    print(
        f"{options.connections} connections: {shares[0]:.2%} to {shares[-1]:.2%} of a turn of {options.turn_tokens} tokens,"
        f" {statistics.median(shares):.2%} in the middle of {len(shares)}"
    )


if __name__ == "__main__":
    main()
