"""`stoker mcp`: Stoker for agents."""

from __future__ import annotations

import sys

import click

HELP = """Serve an agent over the Model Context Protocol, on standard input and output.

An agent starts this by itself; `stoker clients config vibe --mcp` prints what to tell it (also claude-code, opencode).
It can look: why a service failed, what is wrong with a launch, what a flag does, what is known, how services are. With
--allow-actions it can also propose to start, stop, switch or mend services that stoker.toml names, and do so after a
second call that names the proposal; both are recorded in agents.jsonl of the state folder.

\b
Example:
  stoker mcp
  stoker mcp --allow-actions
  stoker mcp --json               the tools, with what each asks for
"""


@click.command(help=HELP, short_help="Serve agents: diagnose, plan, search, over MCP.")
@click.option("--allow-actions", is_flag=True, help="Offer the tools that start and stop services, in two steps.")
@click.option("--json", "as_json", is_flag=True, help="Print the tools as JSON instead, and end.")
def mcp(allow_actions: bool, as_json: bool) -> None:
    """Serves until its input ends."""
    from stoker.cli.show import say_json
    from stoker.config import find_paths
    from stoker.mcp.desk import Desk
    from stoker.mcp.loop import serve
    from stoker.mcp.session import Session
    from stoker.mcp.tools import load_tools

    if as_json:
        say_json([tool.view() for tool in load_tools(may_act=allow_actions).values()])
        return
    if sys.stdin.isatty():
        click.echo("This speaks to agents; see `stoker clients config vibe --mcp`. Ctrl-C ends it.", err=True)
    serve(Session(Desk(find_paths(), may_act=allow_actions)))


COMMAND = mcp
