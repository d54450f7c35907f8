"""`stoker bench list`: the runs that are kept."""

from __future__ import annotations

import click

HELP = """Show the runs that are kept, the last first; --published shows tables that others published of such machines.

\b
Example:
  stoker bench list
  stoker bench list --published
"""


@click.command(help=HELP, short_help="Show the runs that are kept.")
@click.option("--published", is_flag=True, help="Show what others published instead.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_runs(published: bool, as_json: bool) -> None:
    """Prints a table."""
    from stoker.cli.bench_runs_text import lines_text, published_text
    from stoker.cli.show import say_json
    from stoker.config import find_paths
    from stoker.flows import bench_runs as flow

    lines = flow.list_runs(find_paths(), are_published=published)
    if as_json:
        say_json(lines)
    else:
        click.echo(published_text(lines) if published else lines_text(lines))


COMMAND = list_runs
