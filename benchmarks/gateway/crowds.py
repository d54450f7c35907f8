"""Measures crowds: many requests at once for an engine whose own server is busy with what it writes. Prints Markdown.

    python -m benchmarks.gateway.crowds --repeats 8 --write docs/measured/gateway.md     some 2 minutes for each peer

A server on uvloop takes one new connection in each turn of its loop, which lasts the longer the more streams it writes. So
it matters whether a gateway opens its connections to the engine with the crowd or has them open. Crowds come by turns,
through each gateway and past it, so far apart that a server that closes idle connections after 5 s has closed them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple, cast

import uvloop

from benchmarks.gateway.busy_engine import WORD
from benchmarks.gateway.choice import choose
from benchmarks.gateway.cores import choose_cores, describe_cores, read_cores
from benchmarks.gateway.document import write_part
from benchmarks.gateway.machine import Stolen, describe_machine, describe_versions
from benchmarks.gateway.peers import Peer, read_entries
from benchmarks.gateway.processes import end_cleanly_on_sigterm
from benchmarks.gateway.raw_client import CHAT
from benchmarks.gateway.stoker_peer import Stoker
from benchmarks.gateway.table import markdown
from benchmarks.shares import say_share

ENGINE = ("benchmarks.gateway.busy_engine",)
AS_BEFORE = "stoker, none opened ahead"
HEADS = ("asked", "first token, median ms", "nine in ten by, ms", "the last one, ms", "until all is there, s", "rate kept")


class Crowd(NamedTuple):
    middle_s: float
    late_s: float
    last_s: float
    took_s: float


class Stream(asyncio.Protocol):
    """One client's connection, and when its first and its last chunk came."""

    def __init__(self) -> None:
        self.first_s: float | None = None
        self.said = bytearray()
        self.ended = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """May ask now."""
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Notes the time."""
        now_s = time.perf_counter()
        if self.first_s is None and b"content" in data and b"data:" in data:
            self.first_s = now_s
        self.said += data
        if b"[DONE]" in data:
            self.ended.set_result(now_s)

    def connection_lost(self, error: Exception | None) -> None:
        """An answer that is under way has failed."""
        if not self.ended.done():
            self.ended.set_exception(ConnectionError("a connection ended before its answer did"))


async def ask_crowd(port: int, raw: bytes, streams: int, tokens: int, over_s: float) -> Crowd:
    """Returns how long a crowd waited whose requests come, on connections that are open, within a moment."""
    loop = asyncio.get_running_loop()
    clients = [(await loop.create_connection(Stream, "127.0.0.1", port))[1] for _ in range(streams)]
    began_s = time.perf_counter()
    for number, client in enumerate(clients):
        await asyncio.sleep(max(0.0, began_s + over_s * number / streams - time.perf_counter()))
        client.transport.write(raw)
    ended_s = max(await asyncio.gather(*(client.ended for client in clients)))
    short = sum(client.said.count(WORD) != tokens for client in clients)
    if short:
        raise RuntimeError(f"{short} of {streams} answers have not the {tokens} tokens that were asked for")
    first_s = sorted(client.first_s - began_s for client in clients if client.first_s is not None)
    for client in clients:
        client.transport.abort()
    return Crowd(statistics.median(first_s), first_s[len(first_s) * 9 // 10], first_s[-1], ended_s - began_s)


def render_request(port: int, headers: dict[str, str], tokens: int) -> bytes:
    """Returns the request of every client."""
    messages = [{"role": "user", "content": "mock"}]
    body = json.dumps({"model": "mock", "stream": True, "max_tokens": tokens, "messages": messages}).encode()
    lines = [f"POST {CHAT} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Content-Type: application/json"]
    lines += [f"Content-Length: {len(body)}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def take_turns(peer: Peer, options: argparse.Namespace) -> list[tuple[Crowd, Crowd]]:
    """Returns crowds in pairs, through a gateway and past it; the first pair warms up."""
    sides: tuple[tuple[int, dict[str, str]], ...] = ((peer.port, peer.headers), (peer.engine_port, {}))
    pairs: list[tuple[Crowd, Crowd]] = []
    for _ in range(options.repeats + 1):
        pair = []
        for port, headers in sides:
            raw = render_request(port, headers, options.tokens)
            pair.append(await ask_crowd(port, raw, options.streams, options.tokens, options.over_s))
            await asyncio.sleep(options.pause_s)
        pairs.append((pair[0], pair[1]))
    return pairs[1:]


def row_of(name: str, crowds: list[Crowd], kept: str = "") -> list[str]:
    """Returns a line of the table: medians, and the slowest and quickest of what matters most."""
    middle, late, last, took = (sorted(one) for one in zip(*crowds, strict=True))
    in_ms = [f"{1000 * statistics.median(one):.0f}" for one in (middle, late)]
    last_ms = f"{1000 * statistics.median(last):.0f} ({1000 * last[0]:.0f} to {1000 * last[-1]:.0f})"
    return [name, *in_ms, last_ms, f"{statistics.median(took):.2f} ({took[0]:.2f} to {took[-1]:.2f})", kept]


def kept_of(pairs: list[tuple[Crowd, Crowd]]) -> str:
    """Returns what is kept of the rate past a gateway, pair by pair, with the interval that holds it."""
    return say_share([math.log(past.took_s / through.took_s) for through, past in pairs])


def measure_peer(start: Callable[[], Peer], options: argparse.Namespace) -> list[tuple[Crowd, Crowd]]:
    """Starts a gateway, measures it, and ends it."""
    peer = start()
    try:
        return uvloop.run(take_turns(peer, options))
    finally:
        peer.stop()


def measure(peers: dict[str, Callable[[], Peer]], options: argparse.Namespace) -> str:
    """Returns the table of all peers, each beside its own engine."""
    rows = []
    for name, start in peers.items():
        try:
            pairs = measure_peer(start, options)
        except (OSError, RuntimeError) as problem:
            print(f"{name} failed: {problem}", file=sys.stderr, flush=True)
            rows.append([name, *["-"] * (len(HEADS) - 2), "failed"])
            continue
        rows.append(row_of(name, [through for through, _ in pairs], kept_of(pairs)))
        rows.append(row_of(f"past {name}", [past for _, past in pairs]))
        print(rows[-2], rows[-1], file=sys.stderr, flush=True)
    return markdown(HEADS, rows)


def main() -> None:
    """Measures, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", nargs="+", help="stoker, or a name of peers.toml; else all that are on PATH")
    parser.add_argument("--repeats", type=int, default=8)
    parser.add_argument("--streams", type=int, default=128)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--over-s", type=float, default=0.1, help="within which the requests come")
    parser.add_argument("--pause-s", type=float, default=6.0, help="between crowds")
    parser.add_argument("--write", type=Path, help="write the table into this document, too")
    options = parser.parse_args()
    end_cleanly_on_sigterm()
    cores, entries, machine, stolen = choose_cores(None, read_cores()), read_entries(), describe_machine(), Stolen()
    if cores.client is not None:
        os.sched_setaffinity(0, {cores.client})
    peers = choose(options.peers or [*entries, "stoker"], entries, cores, ENGINE)
    peers[AS_BEFORE] = partial(Stoker, cores, (*ENGINE, "--anonymous"))
    table = measure(peers, options)
    versions = describe_versions({name: entry for name, entry in entries.items() if name in peers})
    asked = f"{options.streams} requests within {options.over_s:g} s, {options.tokens} tokens each"
    asked += f", {options.repeats} crowds through each and as many past it"
    text = f"{machine}; {describe_cores(cores)}; {stolen.describe()}.\n\n{versions}. {asked}.\n\n{table}\n"
    print(text)
    if options.write:
        write_part(options.write, "crowds", text)


if __name__ == "__main__":
    main()
