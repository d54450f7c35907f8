"""`stoker timeline`: what a start was made of."""

from __future__ import annotations

from pathlib import Path

import click

HELP = """Show what an engine's last start was made of, beside the start before, and what to do about the slowest part.

\b
Without a service it is the one that started last. --log reads any engine's log file, from any machine.

\b
Example:
  stoker timeline demo
  stoker timeline coder --measure
  stoker timeline --log vllm.log
"""


@click.command(help=HELP, short_help="Show what a start was made of, and its slowest part.")
@click.argument("service", required=False)
@click.option("--log", "log", type=click.Path(path_type=Path), help="Read the last start in this file instead.")
@click.option("--engine", help="Whose log it is, where its lines do not tell.")
@click.option(
    "--measure", is_flag=True, help="Measure the model's disk too, for two seconds, to compare the loading with it."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def timeline(service: str | None, log: Path | None, engine: str | None, measure: bool, as_json: bool) -> None:
    """Reads what the daemon kept, or a file; it works without a daemon too."""
    from stoker.cli.show import say_json
    from stoker.cli.timeline_text import timeline_text
    from stoker.config import find_paths
    from stoker.flows.timeline import view_log, view_service

    _check(service, log, engine, measure)
    view = view_log(log, engine) if log is not None else view_service(find_paths(), service, measure)
    if as_json:
        say_json(view)
    else:
        click.echo(timeline_text(view))


def _check(service: str | None, log: Path | None, engine: str | None, measure: bool) -> None:
    if log is not None and (service is not None or measure):
        raise click.UsageError("--log reads a file of any machine: name no service beside it, and no --measure")
    if engine is not None and log is None:
        raise click.UsageError("--engine says whose log it is, so it goes with --log alone")


COMMAND = timeline
