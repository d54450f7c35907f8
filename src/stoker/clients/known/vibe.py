"""Mistral's Vibe CLI: `config.toml` of `~/.vibe` (`VIBE_HOME` moves it) or of a trusted folder's `.vibe`.

Read in the sources of 2.7.2, 2.18.4 and 3.0.2, and watched with each of them: see the rules `vibe-*`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from stoker.clients import KEY_VARIABLE, Client, Needs, Rendered
from stoker.clients.mcp_servers import check_command, find_download, split_command
from stoker.clients.toml_lines import Lines, find_lines, read_toml
from stoker.plan.written.table import Table
from stoker.records import ClientFact, ClientSetting, ClientUse, McpServer, McpTransport, Written

STARTUP_LIMIT_S = 10.0
COMPACT_AT = 0.8  # of the context: Vibe sums up when it comes there, and its own value is far beyond a local model's
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")  # anything else in `api_key_env_var` is a key, put there by mistake
TRANSPORTS: tuple[McpTransport, ...] = ("stdio", "http", "streamable-http")


def read(text: str, name: str) -> tuple[ClientUse, ...]:
    """Returns the models with their providers, and what is odd in the servers."""
    top, lines = Table(read_toml(text, name)), find_lines(text)
    return (*_models(top, lines), ClientUse(facts=(*_tables(top, lines), *_entries(top, lines))))


def _models(top: Table, lines: Lines) -> Iterator[ClientUse]:
    providers = {one.text("name"): one for one in top.tables("providers")}
    for model in top.tables("models"):
        provider = providers.get(model.text("provider"))
        base = _written(provider, "api_base", lines) if provider else None
        key = _written(provider, "api_key_env_var", lines)
        is_name = key is not None and VARIABLE.fullmatch(key.value)
        yield ClientUse(base, None if is_name else key, _written(model, "name", lines))


def _written(table: Table | None, key: str, lines: Lines) -> Written | None:
    value = table.text(key) if table else None
    return None if table is None or not value else Written(value, table.where(key), lines.line(table.where(key)))


def _tables(top: Table, lines: Lines) -> Iterator[ClientFact]:
    """Spellings of the servers' table that Vibe passes over, or refuses."""
    if "mcp" in top:
        names = [name for name, value in top.table("mcp").values.items() if isinstance(value, dict)] or [""]
        for name in names:
            path = f"mcp.{name}".rstrip(".")
            yield ClientFact("mcp", "table", lines.line(path) or lines.line("mcp"), f"`[{path}]`")
    if isinstance(top.values.get("mcp_servers"), dict):
        first = next(iter(top.table("mcp_servers").values), "")
        path = f"mcp_servers.{first}"
        yield ClientFact("mcp", "map", lines.line(path) or lines.line("mcp_servers"), f"`[{path}]`")


def _entries(top: Table, lines: Lines) -> Iterator[ClientFact]:
    entries = top.tables("mcp_servers") if isinstance(top.values.get("mcp_servers"), list) else []
    names = Counter(entry.text("name") for entry in entries)
    for entry in entries:
        name, line = entry.text("name") or "", lines.line(entry.path)
        if entry.text("transport") not in TRANSPORTS:
            yield ClientFact("mcp", "no transport", line, f"`{name}` has {entry.text('transport') or 'none'}")
        elif entry.text("transport") == "stdio" and (wrong := check_command(entry.values.get("command"))):
            yield ClientFact("mcp", "no command", line, f"`{name}`: {wrong}")
        if names[name] > 1:
            yield ClientFact("mcp", "twice", line, f"`{name}`")
        if entry.is_on("disabled"):
            yield ClientFact("mcp", "disabled", lines.line(entry.where("disabled")), f"`{name}`")


def read_servers(text: str) -> tuple[McpServer, ...]:
    """Returns the servers that have a name, a transport and, where they are started, a command that can be split."""
    top, lines = Table(read_toml(text, "config.toml")), find_lines(text)
    entries = top.tables("mcp_servers") if isinstance(top.values.get("mcp_servers"), list) else []
    return tuple(found for place, entry in enumerate(entries) if (found := _server(place, entry, lines)) is not None)


def _server(place: int, entry: Table, lines: Lines) -> McpServer | None:
    transport = next((one for one in TRANSPORTS if one == entry.text("transport")), None)
    name, block = entry.text("name"), lines.block(entry.path)
    if transport is None or not name:
        return None
    if transport == "stdio" and check_command(entry.values.get("command")):
        return None
    argv = split_command(entry.values.get("command"), entry.values.get("args")) if transport == "stdio" else ()
    download, limit_s = find_download(argv), entry.values.get("startup_timeout_sec")
    return McpServer(
        name=name, transport=transport, argv=argv, environment=tuple(entry.table("env").pairs().items()),
        folder=entry.text("cwd"), disabled=entry.is_on("disabled"), place=place,
        startup_limit_s=float(limit_s) if isinstance(limit_s, int | float) and limit_s > 0 else STARTUP_LIMIT_S,
        first_line=block.first if block else 0, last_line=block.last if block else 0,
        package=download.package if download else "", installs=download.installs if download else (),
    )  # fmt: skip


def render(needs: Needs) -> Rendered:
    """Returns the tables for config.toml."""
    context = needs.context_tokens
    compact = "" if context is None else f"auto_compact_threshold = {int(context * COMPACT_AT)}\n"
    text = (
        f'active_model = "stoker"   # above all tables\n\n[[providers]]\nname = "stoker"\napi_base = "{needs.url}"\n'
        f'api_key_env_var = "{KEY_VARIABLE}"\napi_style = "openai"\nbackend = "generic"\n\n'
        f'[[models]]\nname = "{needs.model}"\nprovider = "stoker"\nalias = "stoker"\n{compact}'
    )
    settings = (
        ClientSetting("api_key_env_var", KEY_VARIABLE, "the name of a variable, never the key itself; export it, or put "
                      f"{KEY_VARIABLE}=KEY into ~/.vibe/.env (mode 0600)"),
        ClientSetting("backend", "generic", "the other one, mistral, speaks to Mistral's own service"),
        ClientSetting("auto_compact_threshold", str(int(context * COMPACT_AT)) if context else "80 % of the context",
                      "Vibe's own value is beyond a local model's context: a long session ends in a 400"),
        ClientSetting("context", "at least 16,384 tokens", "its first request alone took 11,260 tokens with 2.7.2, 13,336 "
                      "with 2.18.4 and 13,472 with 3.0.2 (agent-prompt-14k-tokens)"),
    )  # fmt: skip
    return Rendered("~/.vibe/config.toml", text, settings)


CLIENT = Client(
    "vibe", "Mistral Vibe", read, render, places=("config.toml",), home_variable="VIBE_HOME", offers_tools=True,
    servers=read_servers,
)  # fmt: skip
