"""`stoker bench show`: one run."""

from __future__ import annotations

import click

HELP = """Show a run: what was measured, with what, and each cell. RUN is a number, `last`, or `published:NAME`.

\b
Example:
  stoker bench show last
  stoker bench show 12 --json --requests
"""


@click.command(help=HELP, short_help="Show one run.")
@click.argument("run", default="last")
@click.option("--requests", is_flag=True, help="With --json: every request and token, where they are still kept.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(run: str, requests: bool, as_json: bool) -> None:
    """Prints a table with bars."""
    from stoker.cli.bench_runs_text import kept_text
    from stoker.cli.show import say_json
    from stoker.config import find_paths
    from stoker.flows import bench_runs as flow

    kept = flow.find_run(find_paths(), run)
    if as_json:
        say_json(kept if requests else flow.without_requests(kept))
    else:
        click.echo(kept_text(kept))


COMMAND = show
