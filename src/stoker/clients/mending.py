"""Mends the list of MCP servers in a client's TOML file: nothing is deleted, what goes becomes a comment."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

from stoker.clients.toml_lines import Block, find_lines, split_lines
from stoker.errors import StokerError
from stoker.plan.importing.toml import render_value
from stoker.records import McpServer

TABLE = "mcp_servers"


def take_out(text: str, servers: Iterable[McpServer], because: str) -> str:
    """Returns the text with these servers as comments; raises StokerError where the rest would not be as it was."""
    gone = sorted(servers, key=lambda one: one.place, reverse=True)
    for server in gone:
        text = _comment_out(text, Block(server.name, server.first_line, server.last_line), because)
    return text


def take_out_ignored(text: str, because: str) -> str:
    """Returns the text with the tables that the client passes over, `[mcp]` and those below it, as comments."""
    while (block := next((one for one in find_lines(text).blocks if one.path.split(".")[0] == "mcp"), None)) is not None:
        text = _comment_out(text, block, because)
    return text


def _comment_out(text: str, block: Block, because: str) -> str:
    lines = split_lines(text)
    inside = [f"# {line}" if line.strip() else line for line in lines[block.first - 1 : block.last]]
    return "".join([*lines[: block.first - 1], f"# {because}\n", *inside, *lines[block.last :]])


def call_program(text: str, server: McpServer, argv: tuple[str, ...], because: str) -> str:
    """Returns the text in which a server is started by these words; its former words stay above as comments."""
    lines = split_lines(text if text.endswith("\n") else f"{text}\n")
    keys = find_lines(text).keys
    own = {name: keys.get(f"{TABLE}.{server.place}.{name}") for name in ("command", "args")}
    if own["command"] is None:
        raise StokerError(f"`{server.name}` has no line with its command", why="it may be written as one inline table")
    spans = [_span(lines, first, server.last_line) for first in own.values() if first is not None]
    fresh = [f"# {because}\n", f"command = {render_value(argv[0])}\n", f"args = {render_value(argv[1:])}\n"]
    result: list[str] = []
    for number, line in enumerate(lines, 1):
        inside = any(number in span for span in spans)
        result.append(f"# {line}" if inside else line)
        if number == max(span[-1] for span in spans):
            result += fresh
    return "".join(result)


def _span(lines: list[str], first: int, last: int) -> range:
    """The lines of one value: as many as it takes to be TOML."""
    for end in range(first, last + 1):
        try:
            tomllib.loads("".join(lines[first - 1 : end]))
        except tomllib.TOMLDecodeError:
            continue
        return range(first, end + 1)
    raise StokerError(f"the value in line {first} does not end")


def check_mended(before: str, after: str, gone: set[int], called: Mapping[int, tuple[str, ...]]) -> None:
    """Raises StokerError unless the mended text says exactly what it should: all that it said, but for these servers."""
    wanted = tomllib.loads(before)
    wanted.pop("mcp", None)
    entries: list[dict[str, Any]] = wanted.pop(TABLE, [])
    for place, argv in called.items():
        entries[place] |= {"command": argv[0], "args": list(argv[1:])}
    left = [entry for place, entry in enumerate(entries) if place not in gone]
    try:
        found = tomllib.loads(after)
    except tomllib.TOMLDecodeError:
        found = {}
    if found != (wanted | ({TABLE: left} if left else {})):
        raise StokerError(
            "the file was not mended: it would not have said what it should",
            why="it is written in a way that is not foreseen here", next_step="change it by hand; nothing was written",
        )  # fmt: skip
