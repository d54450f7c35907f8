"""What makes an agent start `stoker mcp`: the entry for its own file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from stoker.clients import Rendered
from stoker.errors import WrongUse, near_miss
from stoker.records import ClientSetting

NAME = "stoker"
TOKENS = "about 3,000 tokens"
Variables = Mapping[str, str]
Render = Callable[[Sequence[str], Variables], str]


class Entry(NamedTuple):
    """Of one agent: its title, the file, how the entry is written there, and what else is to be said of it."""

    title: str
    place: str
    render: Render
    more: tuple[ClientSetting, ...] = ()


def _vibe(words: Sequence[str], variables: Variables) -> str:
    # A JSON text is a TOML text too; and Vibe splits `command` as a shell would, so its words are a list here.
    table = ", ".join(f"{name} = {json.dumps(value)}" for name, value in variables.items())
    env = f"env = {{ {table} }}\n" if variables else ""
    command = f"command = {json.dumps(list(words[:1]))}\nargs = {json.dumps(list(words[1:]))}\n"
    return f'[[mcp_servers]]\nname = "{NAME}"\ntransport = "stdio"\n{command}{env}'


def _claude_code(words: Sequence[str], variables: Variables) -> str:
    entry = {"type": "stdio", "command": words[0], "args": list(words[1:]), "env": dict(variables)}
    return json.dumps({"mcpServers": {NAME: entry}}, indent=2) + "\n"


def _opencode(words: Sequence[str], variables: Variables) -> str:
    entry = {"type": "local", "command": list(words), "enabled": True, "environment": dict(variables)}
    return json.dumps({"$schema": "https://opencode.ai/config.json", "mcp": {NAME: entry}}, indent=2) + "\n"


ENTRIES = {
    "vibe": Entry("Mistral Vibe", "~/.vibe/config.toml", _vibe),
    "claude-code": Entry(
        "Claude Code", ".mcp.json of the project", _claude_code,
        (ClientSetting("scope", "project", "for all your projects: `claude mcp add --scope user stoker -- COMMAND mcp`"),),
    ),
    "opencode": Entry(
        "opencode", "~/.config/opencode/opencode.json", _opencode,
        (ClientSetting("mcp", NAME, "V1's form; V2 wants the entry below `mcp.servers`, and no `enabled`"),),
    ),
}  # fmt: skip


def render_entry(name: str, words: Sequence[str], variables: Variables) -> tuple[Entry, Rendered]:
    """Returns what to write into an agent's file; raises WrongUse where no entry of it is known."""
    if name not in ENTRIES:
        near = near_miss(name, ENTRIES, "`stoker mcp --help` says what any other agent has to start")
        raise WrongUse(f"no MCP entry of `{name}` is known", why=f"known are: {', '.join(ENTRIES)}", next_step=near)
    entry = ENTRIES[name]
    settings = [
        ClientSetting("command", words[0], "a whole path: agents start their servers with a PATH of their own"),
        ClientSetting(
            "--allow-actions", "", "add it to the words if the agent may propose to start, stop and mend services"
        ),
        ClientSetting("tools", TOKENS, "their descriptions are in each request: much for a context of 16,384 tokens"),
    ]
    if variables:
        settings.append(ClientSetting("environment", ", ".join(variables), "your state folder or stoker.toml is elsewhere"))
    return entry, Rendered(entry.place, entry.render(words, variables), (*settings, *entry.more))
