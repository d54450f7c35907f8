"""Asks a server of the Model Context Protocol, over its input and output, who it is and which tools it has."""

from __future__ import annotations

import time
from typing import Any, Protocol

import msgspec

from stoker.errors import StokerError

PROTOCOL = "2025-06-18"
METHOD_NOT_FOUND = -32601
MOST_PAGES = 20
CLIENT = {"name": "stoker", "version": "1"}


class Channel(Protocol):
    """Lines to and from a server."""

    async def write_line(self, line: bytes) -> None:
        """Sends one."""

    async def read_line(self) -> bytes:
        """Receives one."""


async def count_tools(channel: Channel) -> int:
    """Returns how many tools a server offers, after the handshake; raises StokerError with what came instead."""
    await _ask(channel, 1, "initialize", {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": CLIENT})
    await _send(channel, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    count, cursor = 0, None
    for page in range(MOST_PAGES):
        found = await _ask(channel, 2 + page, "tools/list", {"cursor": cursor} if cursor else {})
        tools = found.get("tools")
        if not isinstance(tools, list):
            raise StokerError("it answered tools/list without a list of tools")
        count, cursor = count + len(tools), found.get("nextCursor")
        if not cursor:
            break
    return count


async def time_to_ready(channel: Channel, begun_s: float) -> tuple[float, int]:
    """Returns how long after `begun_s` (of the monotonic clock) a server had told its tools, and how many these are."""
    tools = await count_tools(channel)
    return time.monotonic() - begun_s, tools


async def _ask(channel: Channel, number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    await _send(channel, {"jsonrpc": "2.0", "id": number, "method": method, "params": params})
    while True:
        message = _decode(await channel.read_line())
        if message is None:
            continue
        if message.get("id") == number and "method" not in message:
            return _result(message, method)
        if "id" in message and "method" in message:
            await _send(channel, _answer(message))


def _decode(line: bytes) -> dict[str, Any] | None:
    """A message; None for a line that is none: some servers print a greeting, which clients pass over."""
    try:
        found = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _result(message: dict[str, Any], method: str) -> dict[str, Any]:
    result = message.get("result")
    if isinstance(result, dict):
        return result
    error = message.get("error")
    said = error.get("message") if isinstance(error, dict) else None
    raise StokerError(f"it refused {method}: {said or 'without a reason'}")


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    """What a client without abilities says to a server's own request."""
    head = {"jsonrpc": "2.0", "id": request["id"]}
    if request["method"] == "ping":
        return {**head, "result": {}}
    return {**head, "error": {"code": METHOD_NOT_FOUND, "message": "this client only looks"}}


async def _send(channel: Channel, message: dict[str, Any]) -> None:
    await channel.write_line(msgspec.json.encode(message))
