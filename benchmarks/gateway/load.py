"""Opens many chat streams at once and measures what lies between client and engine.

    python -m benchmarks.gateway.load '{"port": 8700, "pids": [4711]}' '{"streams": 256, "itl_ms": 50}'

The time under way of a chunk is when the client read it less when the engine wrote it; a reply's TTFT is the client's less
the time for which the engine itself held the request. What a gateway adds is its figure less that without a gateway.
Bounded by `--max-s`: replies cut by the clock are counted as unfinished. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import gc
import json
import resource
import sys
import threading
import time
from array import array

import msgspec
import uvloop

from benchmarks.gateway.processes import read_cpu_s, read_rss_bytes
from benchmarks.gateway.raw_client import CHAT
from benchmarks.gateway.stream_client import Broken, StreamConnection

CONNECT_LIMIT_S = 15.0
LATE_LIMIT_S = 5.0
SAMPLE_S = 0.25
QUANTILES = (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0))


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked: `requests` replies, one after another, on each of `streams` connections, opened over `ramp_s`.

    `steps`: the engine writes all streams' tokens together, as one that batches does.
    """

    streams: int
    requests: int = 1
    tokens: int = 64
    ttft_ms: float = 50.0
    itl_ms: float = 20.0
    ramp_s: float = 0.0
    steps: bool = False

    @property
    def ideal_s(self) -> float:
        """How long it takes where nothing is ever late."""
        reply_s = (self.ttft_ms + self.itl_ms * (self.tokens - 1)) / 1000
        return self.ramp_s * (self.streams - 1) / self.streams + self.requests * reply_s


class Target(msgspec.Struct, frozen=True):
    """Where it is asked; `pids` are the gateway's processes, none where the engine itself is asked."""

    port: int
    pids: list[int]
    headers: dict[str, str] = {}
    model: str = "mock"


class Measured(msgspec.Struct, kw_only=True):
    """What came of it; quantiles in microseconds, None where nothing arrived."""

    good: int
    errors: dict[str, int]
    unfinished: int
    chunks: int
    wall_s: float
    stretch: float
    transit_us: dict[str, float] | None
    ttft_us: dict[str, float] | None
    cpu_s: float
    rss_peak_bytes: int
    client_cpu_s: float


class Tally:
    """What all streams together saw; times in nanoseconds."""

    def __init__(self) -> None:
        self.transit_ns, self.ttft_ns = array("q"), array("q")
        self.errors: collections.Counter[str] = collections.Counter()
        self.good = 0


class Sampler(threading.Thread):
    """Notes the peak of the gateway's resident memory."""

    def __init__(self, pids: list[int]) -> None:
        super().__init__(daemon=True)
        self._pids = pids
        self.peak_bytes = 0
        self.ended = threading.Event()

    def run(self) -> None:
        """Looks a few times a second."""
        while not self.ended.is_set():
            self.peak_bytes = max(self.peak_bytes, read_rss_bytes(self._pids))
            self.ended.wait(SAMPLE_S)


def render_request(target: Target, load: Load) -> bytes:
    """Returns the request that every stream sends."""
    words = f"mock ttft={load.ttft_ms:g} itl={load.itl_ms:g} tokens={load.tokens}{' steps=1' * load.steps}"
    content = {"model": target.model, "stream": True, "messages": [{"role": "user", "content": words}]}
    body = json.dumps(content).encode()
    lines = [f"POST {CHAT} HTTP/1.1", f"Host: 127.0.0.1:{target.port}", "Content-Type: application/json"]
    lines += ["Accept: text/event-stream", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in target.headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


class Stream:
    """One client that asks again and again on one connection."""

    def __init__(self, target: Target, load: Load, tally: Tally) -> None:
        self._target, self._load, self._tally = target, load, tally
        self._raw = render_request(target, load)
        self._connection: StreamConnection | None = None

    async def run(self, delay_s: float) -> None:
        """Asks as often as it should."""
        await asyncio.sleep(delay_s)
        try:
            for _ in range(self._load.requests):
                await self._ask()
        finally:
            self._drop()

    async def _ask(self) -> None:
        try:
            if self._connection is None or not self._connection.is_open:
                self._connection = await self._connect()
            await self._connection.ask(self._raw, self._load.tokens)
        except (Broken, OSError, TimeoutError) as problem:
            self._tally.errors[str(problem) if isinstance(problem, Broken) else type(problem).__name__] += 1
            self._drop()
        else:
            self._tally.good += 1

    async def _connect(self) -> StreamConnection:
        loop, tally = asyncio.get_running_loop(), self._tally
        async with asyncio.timeout(CONNECT_LIMIT_S):
            _, connection = await loop.create_connection(
                lambda: StreamConnection(tally.transit_ns, tally.ttft_ns), "127.0.0.1", self._target.port
            )
        return connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.drop()
            self._connection = None


async def drive(target: Target, load: Load, max_s: float) -> Measured:
    """Runs the load and returns what was seen."""
    tally, sampler = Tally(), Sampler(target.pids)
    cpu_before_s, begun_s = read_cpu_s(target.pids), time.monotonic()
    sampler.start()
    streams = [Stream(target, load, tally).run(load.ramp_s * number / load.streams) for number in range(load.streams)]
    tasks = [asyncio.ensure_future(stream) for stream in streams]
    _, late = await asyncio.wait(tasks, timeout=max_s)
    wall_s, cpu_s = time.monotonic() - begun_s, read_cpu_s(target.pids) - cpu_before_s
    for task in late:
        task.cancel()
    if late:
        await asyncio.wait(late, timeout=LATE_LIMIT_S)
    sampler.ended.set()
    sampler.join()
    return Measured(
        good=tally.good, errors=dict(tally.errors), chunks=len(tally.transit_ns), wall_s=wall_s, cpu_s=cpu_s,
        unfinished=load.streams * load.requests - tally.good - tally.errors.total(), stretch=wall_s / load.ideal_s,
        transit_us=quantiles(tally.transit_ns), ttft_us=quantiles(tally.ttft_ns),
        rss_peak_bytes=sampler.peak_bytes, client_cpu_s=time.process_time(),
    )  # fmt: skip


def quantiles(values_ns: array[int]) -> dict[str, float] | None:
    """Returns microseconds at some quantiles."""
    ordered = sorted(values_ns)
    if not ordered:
        return None
    return {name: ordered[min(len(ordered) - 1, int(share * len(ordered)))] / 1000 for name, share in QUANTILES}


def main() -> None:
    """Reads what to ask from its words; prints what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", help="where, as JSON")
    parser.add_argument("load", help="what, as JSON")
    parser.add_argument("--max-s", type=float, default=60.0)
    options = parser.parse_args()
    target, load = msgspec.json.decode(options.target, type=Target), msgspec.json.decode(options.load, type=Load)
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    gc.disable()
    measured = uvloop.run(drive(target, load, options.max_s))
    sys.stdout.buffer.write(msgspec.json.encode(measured))


if __name__ == "__main__":
    main()
