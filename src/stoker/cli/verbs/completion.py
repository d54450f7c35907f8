"""`stoker completion`: the Tab key knows the verbs and options."""

from __future__ import annotations

import click

HELP = """Print the script that lets your shell complete stoker's verbs and options.

\b
Example:
  stoker completion bash >> ~/.bashrc
  stoker completion fish > ~/.config/fish/completions/stoker.fish
"""


@click.command(help=HELP, short_help="Print shell completion for bash, zsh or fish.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.option("--json", "as_json", is_flag=True, help="Print it as a JSON text.")
@click.pass_context
def completion(ctx: click.Context, shell: str, as_json: bool) -> None:
    """Prints click's own completion script."""
    from click.shell_completion import get_completion_class

    from stoker.cli.show import say_json

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completion for {shell}")
    source = kind(ctx.find_root().command, {}, "stoker", "_STOKER_COMPLETE").source()
    if as_json:
        say_json(source)
    else:
        click.echo(source)


COMMAND = completion
