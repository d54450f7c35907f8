"""`stoker watch`: what is seen of the services and the machine, live."""

from __future__ import annotations

import click

HELP = """Show what watching sees: speed, accept rate beside its usual band, memory, and alerts, until Ctrl-C.

The daemon watches all the time; this only shows it. What is watched and what you can be told: docs/watching.md.

\b
Example:
  stoker watch
  stoker watch --on spark-b
  stoker watch --once --json    services[].{name,accept_rate,band,tokens_per_s,...}, alerts[].{id,about,state,why,fix,...}
"""
EVERY_S = 2.0


@click.command(help=HELP, short_help="Show speed, accept rates and alerts, live.")
@click.option("--on", "box", help="A linked box, instead of this one.")
@click.option("--once", is_flag=True, help="Show it once.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, once.")
def watch(box: str | None, once: bool, as_json: bool) -> None:
    """Prints what is seen, again and again."""
    import contextlib
    import time

    with contextlib.suppress(KeyboardInterrupt):  # the way out that the help names
        _show(box, as_json)
        while not once and not as_json:
            time.sleep(EVERY_S)
            click.clear()
            _show(box, as_json)


COMMAND = watch


def _show(box: str | None, as_json: bool) -> None:
    from stoker.cli.show import say_json
    from stoker.cli.watch_text import watch_text
    from stoker.config import find_paths
    from stoker.flows import alerts as flow

    view = flow.watch(find_paths(), box)
    if as_json:
        say_json(view)
    else:
        click.echo(watch_text(view))
