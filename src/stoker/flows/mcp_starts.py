"""Starts a client's MCP servers as the client does, one after the other, and times each until it has told its tools."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable, Mapping

from stoker.clients.mcp_servers import find_download
from stoker.errors import StokerError
from stoker.plan.secrets import hide, is_secret_variable
from stoker.probes.clients.mcp_server import time_to_ready
from stoker.records import ClientFact, McpServer, McpStart
from stoker.supervise.piped import running
from stoker.supervise.steps import ended_as_by_ctrl_c

# What clients hand on of their own environment, as the protocol's Python library does: no secrets of other programs.
HANDED_ON = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "TMPDIR")
PATIENCE_S = 60.0  # beyond the client's own limit, to tell a slow server from one that never comes
SLOW_S = 1.0


def time_starts(
    servers: Iterable[McpServer], environment: Mapping[str, str] = os.environ, patience_s: float = PATIENCE_S
) -> tuple[McpStart, ...]:
    """Returns how each server that a client starts did; those that are only asked over HTTP are left out."""
    with ended_as_by_ctrl_c():
        return tuple(asyncio.run(_start(one, environment, patience_s)) for one in servers if one.transport == "stdio")


async def _start(server: McpServer, environment: Mapping[str, str], patience_s: float) -> McpStart:
    own = {name: environment[name] for name in HANDED_ON if name in environment} | dict(server.environment)
    begun_s, limit_s = time.monotonic(), max(server.startup_limit_s, patience_s)
    try:
        async with running(server.argv, own, server.folder, f"mcp-check/{os.getpid()}/{server.place}") as piped:
            async with asyncio.timeout(limit_s):
                ready_s, tools = await time_to_ready(piped, begun_s)
        return McpStart(server.name, round(ready_s, 2), tools)
    except* TimeoutError:
        why = f"it had not told its tools after {limit_s:g} s"
    except* StokerError as problems:
        why = "; ".join(f"{one}".replace("\n  ", "; ") for one in problems.exceptions)
    return McpStart(server.name, None, None, hide(why, _secrets(server)))


def _secrets(server: McpServer) -> frozenset[str]:
    """What it was given, and may have printed."""
    return frozenset(value for name, value in server.environment if is_secret_variable(name, value))


def start_facts(servers: Iterable[McpServer], starts: Iterable[McpStart]) -> tuple[ClientFact, ...]:
    """Returns what the starts mean by the rules' names."""
    by_name = {server.name: server for server in servers}
    return tuple(fact for start in starts for fact in _facts(by_name[start.server], start))


def _facts(server: McpServer, start: McpStart) -> Iterable[ClientFact]:
    line = server.first_line
    if start.ready_s is None:
        yield ClientFact("mcp", "dead", line, f"`{server.name}`: {start.why}")
    elif start.ready_s > server.startup_limit_s:
        took = f"{start.ready_s:.1f} s, and `startup_timeout_sec` is {server.startup_limit_s:g}"
        yield ClientFact("mcp", "late", line, f"`{server.name}` took {took}")
    elif start.ready_s >= SLOW_S and find_download(server.argv) is None:
        yield ClientFact("mcp", "slow", line, f"`{server.name}` was ready after {start.ready_s:.1f} s")


def download_facts(servers: Iterable[McpServer], starts: Iterable[McpStart]) -> tuple[ClientFact, ...]:
    """Returns which servers look up a package at each start, and what that took if it was tried."""
    took = {start.server: start.ready_s for start in starts}
    found = []
    for server in servers:
        if server.package:
            ready_s = took.get(server.name)
            cost = f", ready after {ready_s:.1f} s" if ready_s is not None else ""
            shown = f"`{server.name}` looks up {server.package}{cost}; `{' '.join(server.installs)}` installs it once"
            found.append(ClientFact("mcp", "downloads", server.first_line, shown))
    return tuple(found)
