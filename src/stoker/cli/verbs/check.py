"""`stoker check`: whether a model's files are whole."""

from __future__ import annotations

import click

HELP = """Show what a model on disk is, which engines load it, what is missing, and where that comes from.

MODEL is a folder of safetensors, a GGUF file or its folder, or a hub name whose files are in the local cache. Only headers
are read. Exit code 1: something is missing or damaged.

\b
Example:
  stoker check ~/models/mistral-small-4-nvfp4
  stoker check ~/models/qwen3-8b-q4_k_m.gguf --json
"""


@click.command(help=HELP, short_help="Show whether a model's files are whole, and what loads them.")
@click.argument("model")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check(model: str, as_json: bool) -> None:
    """Reads the headers and prints what they tell."""
    from stoker.cli.show import say_json
    from stoker.flows.checking import check_model
    from stoker.flows.models import describe_model
    from stoker.written_paths import expand_home

    view = check_model(expand_home(model))
    if as_json:
        say_json(view)
    else:
        rows = [*describe_model(view.model), ("loads in", ", ".join(view.loads_in) or "no engine that Stoker knows")]
        width = max(len(name) for name, _ in rows)
        click.echo("\n".join(f"{name:<{width}}  {text}" for name, text in rows))
        verdict, colour = ("whole", "green") if view.is_whole else ("not whole", "yellow")
        click.echo(click.style(verdict, fg=colour))
    raise SystemExit(0 if view.is_whole else 1)


COMMAND = check
