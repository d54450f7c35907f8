"""What a gateway does with hostile and oversized requests: plain observations, no verdicts."""

from __future__ import annotations

import collections
import contextlib
import json
import socket
import time
from collections.abc import Callable

from benchmarks.gateway.peers import Peer
from benchmarks.gateway.probes import MIB, Seen, read_events
from benchmarks.gateway.processes import read_rss_bytes
from benchmarks.gateway.raw_client import CHAT, Reply, ask, connect, read, render_head

LARGE_BYTES, HUGE_BYTES = 10_000_000, 100_000_000
HEADER_KIB = (8, 48, 128, 1024)
DRIP_CLIENTS, DRIP_S = 100, 15
ONE_TOKEN = {"messages": [{"role": "user", "content": "mock tokens=1"}]}
BODIES = {
    "invalid JSON": b'{"model": "mock", "messages": [',
    "JSON, but a list": b"[1, 2]",
    "empty body": b"",
    "no model": json.dumps(ONE_TOKEN).encode(),
    "unknown model": json.dumps({"model": "nosuch", **ONE_TOKEN}).encode(),
}
AMBIGUOUS = {
    "length and chunked": "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    "bare LF": "Content-Length: 5\n\nhello",
    "folded header": "X: a\r\n b\r\nContent-Length: 5\r\n\r\nhello",
    "space before the colon": "Content-Length : 5\r\n\r\nhello",
}


def short(reply: Reply) -> str:
    """Returns status and end."""
    return f"{reply.status or 'no status'}{'' if reply.end == 'complete' else ', ' + reply.end}"


def probe_bodies(peer: Peer) -> Seen:
    """Bodies that are large, broken, or name no model of the engine's."""
    before_bytes = read_rss_bytes(peer.pids())
    large = ask(peer, "mock tokens=1 tag=large " + "y" * LARGE_BYTES, limit_s=30)
    seen = {
        "10 MB body": f"{short(large)}; asked {len(read_events(peer, 'large'))}x",
        "grown after it": f"{max(0, read_rss_bytes(peer.pids()) - before_bytes) / MIB:.0f} MiB" if peer.pids() else "-",
        "100 MB body": short(ask(peer, "mock tokens=1 " + "y" * HUGE_BYTES, limit_s=60)),
    }
    return {**seen, **{name: short(ask(peer, raw=raw)) for name, raw in BODIES.items()}}


def probe_headers(peer: Peer) -> Seen:
    """Large headers, and heads that two readers would understand in two ways."""
    seen = {f"{kib} KiB header": short(ask(peer, more=(f"X-Big: {'h' * (kib << 10)}",))) for kib in HEADER_KIB}
    seen |= {name: short(ask_raw(peer, tail)) for name, tail in AMBIGUOUS.items()}
    seen["no HTTP at all"] = short(ask_bytes(peer, b"\x16\x03\x01\x02\x00 not http at all\r\n\r\n"))
    seen["still serves"] = short(ask(peer))
    return seen


def ask_raw(peer: Peer, tail: str) -> Reply:
    """Sends a head that ends as given."""
    keys = "".join(f"{name}: {value}\r\n" for name, value in peer.headers.items())
    return ask_bytes(peer, f"POST {CHAT} HTTP/1.1\r\nHost: 127.0.0.1:{peer.port}\r\n{keys}{tail}".encode())


def ask_bytes(peer: Peer, raw: bytes) -> Reply:
    """Sends bytes and reads what comes of it."""
    reply = Reply()
    with connect(peer.port) as client:
        try:
            client.sendall(raw)
        except OSError as problem:
            reply.end = type(problem).__name__
            return reply
        return read(client, reply, 5.0)


def probe_dripping(peer: Peer) -> Seen:
    """A hundred clients that send a head, and as many that send a body, at a byte a second."""
    head = render_head(peer, 1000)
    kinds = {"head": head[:40], "body": head}
    clients = {kind: [_drip(peer, first) for _ in range(DRIP_CLIENTS)] for kind, first in kinds.items()}
    dropped_s: dict[str, list[float]] = collections.defaultdict(list)
    worst_s, begun_s = 0.0, time.monotonic()
    for _ in range(DRIP_S):
        time.sleep(1)
        for kind, sockets in clients.items():
            gone = [client for client in sockets if _is_gone(client)]
            dropped_s[kind] += [time.monotonic() - begun_s] * len(gone)
            clients[kind] = [client for client in sockets if client not in gone]
        worst_s = max(worst_s, _time_one(peer))
    for client in (client for sockets in clients.values() for client in sockets):
        client.close()
    seen = {f"{kind} at a byte a second, dropped in {DRIP_S} s": _tell(dropped_s[kind]) for kind in kinds}
    return {**seen, "others' longest reply meanwhile": f"{worst_s * 1000:.0f} ms"}


def _drip(peer: Peer, first: bytes) -> socket.socket:
    client = connect(peer.port)
    client.sendall(first)
    client.setblocking(False)
    return client


def _is_gone(client: socket.socket) -> bool:
    with contextlib.suppress(BlockingIOError):
        try:
            client.send(b"x")
            client.recv(4096)
        except BlockingIOError:
            raise
        except OSError:
            pass
        client.close()
        return True
    return False


def _time_one(peer: Peer) -> float:
    begun_s = time.monotonic()
    ask(peer, limit_s=5)
    return time.monotonic() - begun_s


def _tell(dropped_s: list[float]) -> str:
    return f"{len(dropped_s)} of {DRIP_CLIENTS}" + (f", the last after {max(dropped_s):.0f} s" if dropped_s else "")


PROBES: tuple[Callable[[Peer], Seen], ...] = (probe_bodies, probe_headers, probe_dripping)
