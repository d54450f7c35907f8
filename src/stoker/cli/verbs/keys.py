"""`stoker keys`: keys with names, for the people and programs that ask your models."""

from __future__ import annotations

import click

from stoker.cli.kinds import priority, seconds

HELP = """Make, list and end keys with names: each may have models, limits, a priority and an end of its own.

A key is shown once, when it is made; only its digest is kept. Revoking ends it at once, with what runs under it.

\b
Example:
  stoker keys add alice
  stoker keys add ci --models qwen3-coder --rpm 60 --running 2 --priority low --expires 30d
  stoker keys list --json
  stoker keys revoke alice
"""
ADD = """Make a key and print it, this once.

\b
Example:
  stoker keys add ci --models qwen3-coder,stoker-demo --rpm 60 --expires 30d
  stoker keys add prometheus --metrics > stoker.key
"""
LIST = """Show the keys: what each may do, when it was made and last used.

\b
Example:
  stoker keys list
"""
REVOKE = """End a key at once; requests that run under it are cut.

\b
Example:
  stoker keys revoke alice
"""


@click.group(help=HELP, short_help="Make, list and end keys with names.")
def keys() -> None:
    """Holds the three commands."""


COMMAND = keys


@keys.command(help=ADD, short_help="Make a key and print it, this once.")
@click.argument("name")
@click.option("--models", metavar="A,B", help="Only these models, by the names that clients ask for; else all.")
@click.option("--rpm", type=click.IntRange(1, 1_000_000), help="Requests a minute; else no limit of its own.")
@click.option(
    "--running", type=click.IntRange(1, 100_000), help="Requests of each service at once, others wait; else no limit."
)
@click.option("--priority", type=priority, default="normal", metavar="P", help="low, normal, high, or -100 to 100.")
@click.option("--expires", type=seconds, metavar="TIME", help="How long it is good: 12h, 30d, 4w; else until revoked.")
@click.option("--metrics", is_flag=True, help="For /metrics alone, such as Prometheus's; it asks no model.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def add(
    name: str, models: str | None, rpm: int | None, running: int | None, priority: int, expires: float | None,
    metrics: bool, as_json: bool,
) -> None:  # fmt: skip
    """Prints the key alone on standard output, so that it can be piped to where it belongs."""
    from stoker.cli.show import printable, say_json
    from stoker.config import find_paths
    from stoker.flows import keys as flow
    from stoker.records import KeyWish

    scope = None if models is None else tuple(model.strip() for model in models.split(",") if model.strip())
    made = flow.add(find_paths(), KeyWish(name, scope, rpm, running, priority, expires, metrics))
    for warning in made.warnings:
        click.secho(f"Warning: {printable(warning)}", fg="yellow", err=True)
    if as_json:
        say_json(made)
        return
    click.echo(made.key)
    click.echo("Keep it: it is not shown again.", err=True)


@keys.command("list", help=LIST, short_help="Show the keys.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_keys(as_json: bool) -> None:
    """Prints a table."""
    from stoker.cli.key_text import keys_text
    from stoker.cli.show import say_json
    from stoker.config import find_paths
    from stoker.flows import keys as flow

    views = flow.list_keys(find_paths())
    if as_json:
        say_json(views)
    else:
        click.echo(keys_text(views))


@keys.command(help=REVOKE, short_help="End a key at once.")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def revoke(name: str, as_json: bool) -> None:
    """Prints what was cut."""
    from stoker.cli.show import say_json
    from stoker.config import find_paths
    from stoker.flows import keys as flow

    revoked = flow.revoke(find_paths(), name)
    if as_json:
        say_json(revoked)
    else:
        cut = f"; requests cut: {revoked.cut}" if revoked.cut else ""
        click.echo(f"The key `{name}` is refused from now on{cut}.")
