"""`stoker import`: services from launches that were written for something else."""

# ruff: noqa: N999 - a verb's file is named after the verb, and verbs are only ever imported by their text
from __future__ import annotations

from pathlib import Path

import click

HELP = """Turn launches that somebody wrote into services of stoker.toml.

FILE is a shell script, a compose file, a systemd unit, a recipe of sparkrun, eugr, NVIDIA or vLLM, or a config.yaml of
llama-swap. The tables are printed, with a comment for all that was not carried over. Secrets are never copied. A service
that exists is never overwritten.

\b
Example:
  stoker import recipe.yaml
  stoker import run.sh docker-compose.yml --output ~/.config/stoker/stoker.toml
  stoker import llama-swap.yaml --json    services[].{name,keys,flags,environment,not_carried_over,source,line}, toml
"""


@click.command("import", help=HELP, short_help="Make services of launch scripts, compose files and recipes.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Append to this file instead of printing.")
@click.option("--json", "as_json", is_flag=True, help="Print the services as JSON.")
def import_(files: tuple[Path, ...], output: Path | None, as_json: bool) -> None:
    """Prints the tables, or appends them to a file."""
    from stoker.cli.show import printable, say_json
    from stoker.config import find_paths
    from stoker.flows.importing import append_services, check_free, import_files
    from stoker.plan.importing import render_services

    services = import_files(files)
    check_free(services, find_paths(), output)
    text = render_services(services)
    if output is not None:
        append_services(services, output)
    if as_json:
        say_json({"services": services, "toml": text, "written_to": str(output) if output else None})
    elif output is None:
        click.echo(printable(text), nl=False)
    else:
        made = [service.name for service in services if service.keys]
        click.echo(f"Added {', '.join(made) or 'no service'} to {output}.")


COMMAND = import_
