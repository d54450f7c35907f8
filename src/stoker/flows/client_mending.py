"""Mends the MCP servers of a client's file: what was installed is called, what was named goes, and a copy stays."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from stoker.box import LocalBox
from stoker.clients import Client
from stoker.clients.mcp_servers import find_download
from stoker.clients.mending import call_program, check_mended, take_out, take_out_ignored
from stoker.errors import StokerError, WrongUse
from stoker.flows.client_files import write_mended
from stoker.flows.installed_servers import find_installed
from stoker.records import McpServer

IGNORED = "Taken out by `stoker clients check`: this table is passed over; the servers are [[mcp_servers]]."
GONE = "Taken out by `stoker clients check --remove`."
CALLED = "Changed by `stoker clients check --mend`: the installed program, in place of a look-up at each start."


class Mended(NamedTuple):
    """A mended text; `backup` is the copy of what was there before, None where there was nothing to mend."""

    text: str
    backup: str | None


def mend_servers(client: Client, file: Path, text: str, remove: tuple[str, ...]) -> Mended:
    """Writes the mended file; raises StokerError, and changes nothing, where it would not say what it should."""
    if text.encode() != file.read_bytes():
        raise StokerError(f"{file} was not mended", why="it is not UTF-8, as TOML has to be", next_step="save it as UTF-8")
    servers = client.servers(text) if client.servers else ()
    unknown = sorted(set(remove) - {server.name for server in servers})
    if unknown:
        names = ", ".join(server.name for server in servers) or "none"
        raise WrongUse(f"{file} has no server called `{unknown[0]}`", next_step=f"its servers: {names}")
    gone = [server for server in servers if server.name in remove]
    called = {server.place: argv for server in servers if server not in gone and (argv := _installed(server))}
    mended = take_out_ignored(_change(text, servers, gone, called), IGNORED)
    if mended == text:
        return Mended(text, None)
    check_mended(text, mended, {server.place for server in gone}, called)
    return Mended(mended, str(write_mended(file, mended)))


def _change(text: str, servers: tuple[McpServer, ...], gone: list[McpServer], called: dict[int, tuple[str, ...]]) -> str:
    """From the last server to the first, so that the lines of those before stay what they were."""
    for server in sorted(servers, key=lambda one: one.place, reverse=True):
        if server in gone:
            text = take_out(text, [server], GONE)
        elif server.place in called:
            text = call_program(text, server, called[server.place], CALLED)
    return text


def _installed(server: McpServer) -> tuple[str, ...]:
    download = find_download(server.argv)
    return find_installed(download, LocalBox()) if download else ()
