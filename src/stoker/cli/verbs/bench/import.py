"""`stoker bench import`: results of another tool."""

# ruff: noqa: N999 - a command's file is named after the command, and commands are only ever imported by their text

from __future__ import annotations

from pathlib import Path

import click

HELP = """Keep the results of another tool, so that they can be shown and compared.

Known by what is in them: llama-benchy's JSON, CSV and Markdown, `vllm bench serve` and SGLang's bench_serving, and what
`stoker bench export --format stoker` wrote. Nothing is guessed: what is wrong is named with its place.

\b
Example:
  stoker bench import results.json
  stoker bench import serving.jsonl --model qwen3-8b --machine spark-2
"""


@click.command(help=HELP, short_help="Keep the results of another tool.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--model", help="The model that was measured, where the file does not tell.")
@click.option("--machine", help="The machine that it was measured on.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def import_results(file: Path, model: str | None, machine: str | None, as_json: bool) -> None:
    """Prints what is kept now."""
    from stoker.cli.bench_runs_text import kept_text
    from stoker.cli.show import say_json
    from stoker.config import find_paths
    from stoker.flows import bench_runs as flow

    kept = flow.import_results(find_paths(), file, model, machine)
    if as_json:
        say_json(kept)
    else:
        click.echo(kept_text(kept))


COMMAND = import_results
