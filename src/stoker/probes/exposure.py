"""On which of this machine's addresses the port answers, and whether a key is asked for there."""

from __future__ import annotations

import asyncio
import socket
from urllib.parse import urlsplit

import psutil

from stoker.probes.kit.asker import Asker
from stoker.probes.kit.findings import Finding, degraded, failed, passed, unknown
from stoker.probes.kit.probe import Probe
from stoker.probes.kit.reply import OK

CONNECT_LIMIT_S = 1.0
KINDS = (socket.AF_INET, socket.AF_INET6)
LOOPBACK = ("127.", "::1")
MEND = "bind it to 127.0.0.1 (--host 127.0.0.1; docker: -p 127.0.0.1:PORT:PORT), and let the gateway answer other machines"


async def endpoint(ask: Asker) -> Finding:
    """The address that was named answers only where it is meant to."""
    return await _look(ask, ask.target.url, on_purpose=ask.target.on_purpose)


async def engine(ask: Asker) -> Finding:
    """The engine behind it answers on loopback alone."""
    if ask.target.engine_url is None:
        return passed("no other engine was named")
    return await _look(ask, ask.target.engine_url, on_purpose=False)


async def _look(ask: Asker, url: str, *, on_purpose: bool) -> Finding:
    parts = urlsplit(url)
    own = _own_addresses()
    if not await asyncio.to_thread(_is_here, parts.hostname or "", own):
        return unknown("it is on another machine, and cannot be looked at from the outside alone", "run this there")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    reached = [one for one in own if not one.startswith(LOOPBACK) and await _answers(one, port)]
    if not reached:
        return passed(f"port {port} answers on loopback alone")
    where = f"port {port} answers on {', '.join(reached)}"
    if await _is_open(ask, reached[0], port):
        return failed(f"{where}, without a key", MEND)
    return passed(f"{where}, on purpose and with a key") if on_purpose else degraded(f"{where}, with a key", MEND)


def _own_addresses() -> list[str]:
    """Returns the addresses of all interfaces; link-local ones need a zone to be asked, and tell nothing more."""
    found = [one for interface in psutil.net_if_addrs().values() for one in interface if one.family in KINDS]
    return [one.address for one in found if "%" not in one.address and not one.address.startswith("fe80")]


def _is_here(host: str, own: list[str]) -> bool:
    try:
        found = {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    return any(one in own or one.startswith(LOOPBACK) for one in found)


async def _answers(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(CONNECT_LIMIT_S):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


async def _is_open(ask: Asker, host: str, port: int) -> bool:
    """Tells whether a chat is answered there without a key."""
    named = f"[{host}]" if ":" in host else host
    reply = await ask.at(f"http://{named}:{port}/v1").send("/chat/completions", ask.body("Say hello.", 1, {}), headers={})
    return reply.status == OK


PROBE = Probe(
    name="exposure",
    sends="The beginning of a connection to each address of this machine; a question without a key where one answers.",
    expects="Answers on loopback alone, or on purpose and with a key.",
    means="The whole network uses the model, and who is on it reads what is asked.",
    mend=MEND,
    checks=(endpoint, engine),
    tokens=2,
)
