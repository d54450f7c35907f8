"""`stoker bench export`: a run in another tool's form."""

from __future__ import annotations

from pathlib import Path

import click

HELP = """Print a run as llama-benchy 0.4.0 writes it, or whole in our own form.

RUN is a number, `last`, or `published:NAME`. What llama-benchy defines in another way is computed by its definition: its
prefill rate counts from the first chunk of any kind.

\b
Example:
  stoker bench export last --format md
  stoker bench export 12 --format stoker -o run-12.json
"""


@click.command(help=HELP, short_help="Print a run in another tool's form.")
@click.argument("run")
@click.option(
    "--format", "form", type=click.Choice(["json", "csv", "md", "stoker"]), default="json",
    help="llama-benchy's JSON, CSV or Markdown, or ours. [json]",
)  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write this file instead.")
def export(run: str, form: str, output: Path | None) -> None:
    """Prints the run, and on standard error what the form cannot hold."""
    from stoker.config import find_paths
    from stoker.flows import bench_runs as flow

    exported = flow.export_run(find_paths(), run, form)
    for one in exported.left_out:
        click.secho(f"left out: {one}, which llama-benchy's files have no place for", fg="yellow", err=True)
    if output is None:
        click.echo(exported.text, nl=not exported.text.endswith("\n"))
    else:
        flow.write_text(output, exported.text)


COMMAND = export
