"""`stoker usage`: who asked which model for how much."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stoker.cli.kinds import seconds

if TYPE_CHECKING:
    from stoker.records import UsageBy

HELP = """Show requests, tokens and times, summed up by key, model or day. What was asked or answered is never kept.

Tokens are what the engines counted; `-` is unknown. The key `owner` is the one that Stoker made.

\b
Example:
  stoker usage
  stoker usage --by day --since 7d
  stoker usage --by model --json
"""


@click.command(help=HELP, short_help="Show who asked which model for how much.")
@click.option("--by", type=click.Choice(["key", "model", "day"]), default="key", help="Sum up by this.")
@click.option("--since", "since_s", type=seconds, metavar="TIME", help="Only the last 12h, 7d, 4w; else all that is kept.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def usage(by: UsageBy, since_s: float | None, as_json: bool) -> None:
    """Prints a table."""
    from stoker.cli.key_text import usage_text
    from stoker.cli.show import say_json
    from stoker.config import find_paths
    from stoker.flows import keys as flow

    view = flow.usage(find_paths(), by, since_s)
    if as_json:
        say_json(view)
    else:
        click.echo(usage_text(view))


COMMAND = usage
