"""`stoker rollback`: back to the plan that worked before."""

from __future__ import annotations

import click

HELP = """Bring a service back to the plan by which it was READY before this one: its flags, its model's revision, its image.

The last three plans that worked are kept. stoker.toml stays as it is: the next `stoker up` takes what it says.

\b
Example:
  stoker rollback coder
"""


@click.command(help=HELP, short_help="Bring a service back to the plan that worked before.")
@click.argument("service")
@click.option("--json", "as_json", is_flag=True, help="Print how it ended as JSON.")
def rollback(service: str, as_json: bool) -> None:
    """Begins the way back and shows its steps."""
    from stoker.cli.switch_text import show_switch
    from stoker.config import find_paths
    from stoker.flows.up import daemon_for_wish

    with daemon_for_wish(find_paths()) as daemon:
        begun = daemon.rollback(service)
    show_switch(daemon, begun, as_json)


COMMAND = rollback
