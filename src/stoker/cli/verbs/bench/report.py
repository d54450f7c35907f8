"""`stoker bench report`: pictures of a run."""

from __future__ import annotations

from pathlib import Path

import click

HELP = """Write pictures of a run: throughput, the distribution of TTFT, the rate over time, accepted draft tokens by
position, and heat maps of prompt, depth and load.

The name's end says what: .html is one file with everything in it, which asks the network for nothing; .svg is one picture;
.png is the same, drawn by Chromium where there is one. RUN is a number, `last`, or `published:NAME`.

\b
Example:
  stoker bench report last -o report.html
  stoker bench report 12 -o run-12.svg
"""


@click.command(help=HELP, short_help="Write pictures of a run.")
@click.argument("run")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="The file: .html, .svg or .png.")
def report(run: str, output: Path) -> None:
    """Prints where the pictures are."""
    from stoker.config import find_paths
    from stoker.flows.bench_report import write_report

    write_report(find_paths(), run, output)
    click.echo(f"written: {output}")


COMMAND = report
