"""`stoker bench compare`: two runs."""

from __future__ import annotations

import click

HELP = """Compare two runs, B beside A: what differs between them, how much each figure changed, and whether by chance.

A verdict comes from a permutation test over the repeats, and counts among all cells; where there are too few repeats,
it says so. A and B are numbers, `last`, or `published:NAME`; they may be of different machines, engines or tools.

\b
Example:
  stoker bench compare 11 12
  stoker bench compare published:qwen3.6-27b-nvfp4-mtp last
"""


@click.command(help=HELP, short_help="Compare two runs.")
@click.argument("a")
@click.argument("b", default="last")
@click.option("--all", "all_figures", is_flag=True, help="Every figure, not only those that people decide by.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def compare(a: str, b: str, all_figures: bool, as_json: bool) -> None:
    """Prints a table."""
    from stoker.cli.bench_compare_text import comparison_text
    from stoker.cli.show import say_json
    from stoker.config import find_paths
    from stoker.flows import bench_runs as flow

    comparison = flow.compare_runs(find_paths(), a, b, all_figures=all_figures)
    if as_json:
        say_json(comparison)
    else:
        click.echo(comparison_text(comparison))


COMMAND = compare
