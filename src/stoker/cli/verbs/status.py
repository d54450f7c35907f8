"""`stoker status`: what runs, since when, and why."""

from __future__ import annotations

import click

HELP = """Show each service: model, state, since when, address and memory.

\b
Example:
  stoker status
  stoker status --watch
  stoker status --json    gateway.url, gateway.key_file, daemon, services[].{name,model,state,since,why,...}
"""
WATCH_S = 1.0


@click.command(help=HELP, short_help="Show what runs, since when, and why.")
@click.option("--watch", is_flag=True, help="Show it again every second, until Ctrl-C.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(watch: bool, as_json: bool) -> None:
    """Prints the status once, or again and again."""
    import time

    from stoker.cli.show import say_json, status_text
    from stoker.config import find_paths
    from stoker.flows.status import read_status

    paths = find_paths()
    while True:
        view = read_status(paths)
        if watch and not as_json:
            click.clear()
        if as_json:
            say_json(view)
        else:
            click.echo(status_text(view))
        if not watch:
            return
        time.sleep(WATCH_S)


COMMAND = status
