"""An agent: the protocol's own client, which starts `stoker mcp` as agents do; and bare lines for what no client sends."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from home import Home

LIMIT_S = 60.0
HANDSHAKE, MODERN = "legacy", "auto"
T = TypeVar("T")


def ask_as_agent(home: Home, story: Callable[[Client], Awaitable[T]], *words: str, mode: str = MODERN) -> T:
    """Returns what a story with a connected client comes to."""

    async def play() -> T:
        argv = ["-m", "stoker", "mcp", *words]
        server = StdioServerParameters(command=sys.executable, args=argv, env=home.environment)
        async with asyncio.timeout(LIMIT_S), Client(stdio_client(server), mode=mode) as client:
            return await story(client)

    return asyncio.run(play())


async def ask_tool(client: Client, name: str, **arguments: object) -> Any:
    """Returns what a tool says; fails where it refuses."""
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result.content
    [block] = result.content
    assert block.type == "text"
    assert json.loads(block.text) == result.structured_content  # what older clients read is the same
    return result.structured_content


async def ask_wrongly(client: Client, name: str, **arguments: object) -> str:
    """Returns how a tool refuses; fails where it does not."""
    result = await client.call_tool(name, arguments)
    assert result.is_error, result.structured_content
    [block] = result.content
    assert block.type == "text"
    assert "Traceback" not in block.text
    return block.text


def call(home: Home, name: str, *words: str, **arguments: object) -> Any:
    """Returns what one tool says to one question."""
    return ask_as_agent(home, lambda client: ask_tool(client, name, **arguments), *words)


def refusal(home: Home, name: str, *words: str, **arguments: object) -> str:
    """Returns how one tool refuses one question."""
    return ask_as_agent(home, lambda client: ask_wrongly(client, name, **arguments), *words)


def say_lines(home: Home, lines: Sequence[bytes]) -> tuple[dict[object, Any], str]:
    """Returns the answers to raw lines by their ids, and what was said on standard error, once the input has ended."""
    argv = [sys.executable, "-m", "stoker", "mcp"]
    done = subprocess.run(
        argv, input=b"".join(lines), env=home.environment, capture_output=True, timeout=LIMIT_S, check=True
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(one["jsonrpc"] == "2.0" for one in answers)
    return {one["id"]: one for one in answers}, done.stderr.decode()


def request(number: object, method: object, **params: object) -> bytes:
    """Returns a request's line."""
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"
