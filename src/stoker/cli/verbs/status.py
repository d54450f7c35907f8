"""`stoker status`: what runs, since when, and why."""

from __future__ import annotations

import click

HELP = """Show each service: model, state, since when, address and memory.

\b
Example:
  stoker status
  stoker status --watch
  stoker status --on spark-b
  stoker status --json    gateway.url, gateway.key_file, daemon, services[].{name,model,state,since,why,...},
                          doors[].{service,on_demand,idle_s}
"""
WATCH_S = 1.0


@click.command(help=HELP, short_help="Show what runs, since when, and why.")
@click.option("--on", "box", help="A linked box, instead of this one.")
@click.option("--watch", is_flag=True, help="Show it again every second, until Ctrl-C.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(box: str | None, watch: bool, as_json: bool) -> None:
    """Prints the status once, or again and again."""
    import contextlib
    import time

    with contextlib.suppress(KeyboardInterrupt):  # the way out that the help names
        _show(box, as_json)
        while watch:
            time.sleep(WATCH_S)
            if not as_json:
                click.clear()
            _show(box, as_json)


COMMAND = status


def _show(box: str | None, as_json: bool) -> None:
    from stoker.cli.show import say_json, status_text
    from stoker.config import find_paths
    from stoker.flows.status import read_status

    if box is None:
        view = read_status(find_paths())
    else:
        from stoker.flows.boxes.linked import find_linked

        view = find_linked(find_paths(), box).status()
    if as_json:
        say_json(view)
    else:
        click.echo(status_text(view))
