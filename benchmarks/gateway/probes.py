"""What a gateway does when engines fail and clients leave: plain observations, no verdicts."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks.gateway.peers import Peer, ask_engine
from benchmarks.gateway.processes import read_rss_bytes, wait_for
from benchmarks.gateway.raw_client import SEQUENCE, Counter, Reply, ask, connect, read, render_chat, send

Seen = dict[str, str]
MIB = 2**20
LEFT_LIMIT_S = 10.0
STATUSES = (400, 429, 500, 503)
ENDS = {
    "engine cut after 5 of 20 chunks": ("tokens=20 die=5 how=rst", True),
    "engine closed after 5 of 20 chunks": ("tokens=20 die=5 how=fin", True),
    "engine cut before any byte": ("tokens=20 die=0 how=rst", True),
    "engine cut before any byte, not streamed": ("tokens=20 die=0 how=rst", False),
    "engine silent after 5 chunks, 5 s watched": ("tokens=20 die=5 how=hang", True),
}
LEAVES = {
    "client leaves mid-stream": ("ttft=20 itl=50 tokens=160", True),
    "client leaves before the first token": ("ttft=8000 itl=10 tokens=3", True),
    "client leaves, not streamed": ("ttft=8000 itl=10 tokens=3", False),
}
SLOW_CHUNKS, SLOW_PAD_BYTES, STALL_S = 16384, 4096, 12.0


class EngineItself:
    """The engine, asked without the gateway."""

    def __init__(self, peer: Peer) -> None:
        self.port = peer.engine_port
        self.headers: dict[str, str] = {}


def read_events(peer: Peer, tag: str) -> list[dict[str, Any]]:
    """Returns what the engine knows of the requests with a tag."""
    events: list[dict[str, Any]] = ask_engine(peer, f"/mock/events?tag={tag}")
    return events


def probe_fidelity(peer: Peer) -> Seen:
    """Compares the engine's own stream with the one through the gateway."""
    fields = {"stream_options": {"include_usage": True}}
    own, through = (SEQUENCE.sub(b"#", ask(asked, fields=fields).body) for asked in (EngineItself(peer), peer))
    return {"stream's bytes as the engine's": "yes" if own == through else f"no: {len(own)} became {len(through)}"}


class Left(NamedTuple):
    """How a request ended at the engine after its client had left; None where it went on."""

    end: str | None
    after_ms: float | None


def probe_leaving(peer: Peer) -> Seen:
    """The client goes: how long until the engine's connection is dropped."""
    return {name: _tell(leave(peer, f"gone{number}", *case)) for number, (name, case) in enumerate(LEAVES.items())}


def _tell(left: Left) -> str:
    return f"engine {left.end} after {left.after_ms:.1f} ms" if left.end else f"engine works on for {LEFT_LIMIT_S:g} s"


def leave(peer: Peer, tag: str, words: str, stream: bool) -> Left:
    """Asks, leaves once the engine has been asked (or, of a paced stream, after five chunks), and waits for the end."""
    with connect(peer.port) as client:
        send(client, peer, render_chat(f"mock {words} tag={tag}", stream))
        wait_for("the engine to be asked", lambda: bool(read_events(peer, tag)), LEFT_LIMIT_S)
        if "itl=50" in words:
            read(client, Reply(), chunks=5)
        left_ns = time.monotonic_ns()
    with contextlib.suppress(TimeoutError):
        wait_for("the end", lambda: bool(read_events(peer, tag)[0]["end"]), LEFT_LIMIT_S)
    event = read_events(peer, tag)[0]
    return Left(event["end"], (event["ended_ns"] - left_ns) / 1e6 if event["end"] else None)


def probe_dying(peer: Peer) -> Seen:
    """The engine breaks off: what the client is told, and how often the engine was asked."""
    seen: Seen = {}
    for number, (name, (words, stream)) in enumerate(ENDS.items()):
        tag = f"die{number}"
        limit_s = 5.0 if "hang" in words else 20.0
        reply = ask(peer, f"mock ttft=10 itl=100 {words} tag={tag}", stream=stream, limit_s=limit_s)
        seen[name] = f"{reply.describe()}; asked {len(read_events(peer, tag))}x"
        peer.restart()
    return seen


def probe_status(peer: Peer) -> Seen:
    """The engine answers with an error: is it passed on as it is, and is the engine asked again?"""
    seen: Seen = {}
    for status in STATUSES:
        seen[f"engine answers {status}"] = show_status(peer, status)
        peer.restart()
    return seen


def show_status(peer: Peer, status: int) -> str:
    """Returns what became of one error."""
    tag = f"status{status}"
    own, through = ask(EngineItself(peer), f"mock status={status}"), ask(peer, f"mock status={status} tag={tag}", limit_s=60)
    kept = {
        "status": through.status == status, "body": own.body == through.body,
        "headers": through.headers.get("x-mock-error") == "yes"
        and through.headers.get("retry-after") == own.headers.get("retry-after"),
    }  # fmt: skip
    lost = [name for name, is_kept in kept.items() if not is_kept]
    return f"{'changed: ' + ', '.join(lost) if lost else 'kept'}; asked {len(read_events(peer, tag))}x"


def probe_slow_reader(peer: Peer) -> Seen:
    """A stream of 64 MiB and a client that reads nothing for 12 s, then everything."""
    before_bytes, peak_bytes = read_rss_bytes(peer.pids()), 0
    body = render_chat(f"mock ttft=1 itl=0 tokens={SLOW_CHUNKS} pad={SLOW_PAD_BYTES} tag=slow")
    with connect(peer.port, receive_bytes=65536) as client:
        send(client, peer, body)
        end_s = time.monotonic() + STALL_S
        while time.monotonic() < end_s:
            time.sleep(0.25)
            peak_bytes = max(peak_bytes, read_rss_bytes(peer.pids()))
        taken_bytes = read_events(peer, "slow")[0]["taken_bytes"]
        reply = read(client, Counter(), 60.0)
    return {
        "reader stalls: taken from the engine of 64 MiB": f"{taken_bytes / MIB:.1f} MiB",
        "reader stalls: gateway's growth": f"{max(0, peak_bytes - before_bytes) / MIB:.1f} MiB" if peer.pids() else "-",
        "then reads on": f"{reply.status}, {reply.chunks} of {SLOW_CHUNKS} chunks, {reply.end}",
    }


PROBES: tuple[Callable[[Peer], Seen], ...] = (
    probe_fidelity, probe_leaving, probe_dying, probe_status, probe_slow_reader,
)  # fmt: skip
