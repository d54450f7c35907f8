"""`stoker history`: how a service, or the machine, did."""

from __future__ import annotations

import click

from stoker.cli.kinds import seconds

HELP = """Show a service's past: tokens a second, accept rate, requests, and the alerts of that time. No daemon is needed.

The only service that ever ran here needs no name.
Minutes are kept for two days, ten minutes for a month, two hours for a year.

\b
Example:
  stoker history coder --since 24h
  stoker history coder --since 30d --json    step_s, rows[].{at,tokens_per_s,accept_rate,...}, alerts[], acts[]
"""


@click.command(help=HELP, short_help="Show how a service did.")
@click.argument("service", required=False)
@click.option("--since", "since_s", type=seconds, default="24h", metavar="TIME", help="The last 2h, 24h, 30d, 52w.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def history(service: str | None, since_s: float, as_json: bool) -> None:
    """Prints a table."""
    from stoker.cli.show import say_json
    from stoker.cli.watch_text import history_text
    from stoker.config import find_paths
    from stoker.flows import alerts as flow
    from stoker.flows.logs import choose_kept

    paths = find_paths()
    view = flow.read_history(paths, service or choose_kept(paths), since_s)
    if as_json:
        say_json(view)
    else:
        click.echo(history_text(view))


COMMAND = history
