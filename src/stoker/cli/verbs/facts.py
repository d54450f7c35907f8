"""`stoker facts`: what Stoker knows of this machine."""

from __future__ import annotations

from pathlib import Path

import click

HELP = """Show what Stoker knows of this machine. '-' is unknown, which is not zero.

The disks shown are those of the state folder, the hub's cache, your services' models, and each FOLDER named.

\b
Example:
  stoker facts
  stoker facts --measure /models
  stoker facts --image vllm/vllm-openai:latest
  stoker facts --json > box.json
"""


@click.command(help=HELP, short_help="Show what is known of this machine.")
@click.argument("folders", nargs=-1, metavar="[FOLDER]...", type=click.Path(path_type=Path))
@click.option("--measure", is_flag=True, help="Measure how fast each disk reads (2 s a disk), and ask CUDA what it sees.")
@click.option("--image", "images", multiple=True, metavar="IMAGE", help="Tell what an image that was pulled holds.")
@click.option("--venv", "venvs", multiple=True, type=click.Path(path_type=Path), help="Tell what an environment holds.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, which `--on FILE` of plan and lint understands.")
def facts(folders: tuple[Path, ...], measure: bool, images: tuple[str, ...], venvs: tuple[Path, ...], as_json: bool) -> None:
    """Prints the machine's facts."""
    from stoker.cli.facts_text import facts_text
    from stoker.cli.show import say_json
    from stoker.config import find_paths
    from stoker.flows.facts import read_facts

    machine = read_facts(find_paths(), folders, images, venvs, measure)
    if as_json:
        say_json(machine)
    else:
        click.echo(facts_text(machine))


COMMAND = facts
