"""`stoker watch`: what is seen of the services and the machine, live."""

from __future__ import annotations

import click

HELP = """Show what watching sees: speed, accept rate beside its usual band, memory, and alerts, until Ctrl-C.

The daemon watches all the time; this only shows it. What is watched and what you can be told: docs/watching.md.

\b
Example:
  stoker watch
  stoker watch --once --json    services[].{name,accept_rate,band,tokens_per_s,...}, alerts[].{id,about,state,why,fix,...}
"""
EVERY_S = 2.0


@click.command(help=HELP, short_help="Show speed, accept rates and alerts, live.")
@click.option("--once", is_flag=True, help="Show it once.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, once.")
def watch(once: bool, as_json: bool) -> None:
    """Prints what is seen, again and again."""
    import contextlib
    import time

    with contextlib.suppress(KeyboardInterrupt):  # the way out that the help names
        _show(as_json)
        while not once and not as_json:
            time.sleep(EVERY_S)
            click.clear()
            _show(as_json)


COMMAND = watch


def _show(as_json: bool) -> None:
    from stoker.cli.show import say_json
    from stoker.cli.watch_text import watch_text
    from stoker.config import find_paths
    from stoker.flows import alerts as flow

    view = flow.watch(find_paths())
    if as_json:
        say_json(view)
    else:
        click.echo(watch_text(view))
