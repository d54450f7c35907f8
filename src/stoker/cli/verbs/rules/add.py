"""`stoker rules add`: begins a rule of the user's own from a failure."""

from __future__ import annotations

from typing import Any

import click

HELP = """Begin a rule of your own from a failure: from the log of a service, or from a log file.

The sign is made of one line of the log (--line, else the most telling one), with its numbers, paths and times
left open; the scope is the engine and the GPU as far as the log tells them. The rule is checked like those that ship, has to
be found in that log, and is written into the folder `rules` beside stoker.toml, where it can be edited.

\b
Example:
  stoker rules add frobnicator-askew coder --cause "Two frobnicators at once." --fix "Start with one."
  stoker rules add triton-askew vllm.log --line 120 --fix "Use Triton." --use=--attention-backend=triton
"""


@click.command(help=HELP, short_help="Begin a rule of your own from a failure.")
@click.argument("rule_id")
@click.argument("target", required=False)
@click.option("--line", "line", type=click.IntRange(min=1), help="The line of the log that is its sign.")
@click.option("--title", help="What goes wrong, in a few words; else the line.")
@click.option("--cause", help="Why it happens.")
@click.option("--fix", help="What to do.")
@click.option("--use", "uses", multiple=True, metavar="NAME=VALUE", help="A --flag or $VARIABLE that mends it; repeatable.")
@click.option("--drop", "drops", multiple=True, metavar="NAME", help="A --flag or $VARIABLE to leave out; repeatable.")
@click.option("--contradicts", multiple=True, metavar="RULE_ID", help="A rule that says otherwise; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print the rule as JSON.")
def add(rule_id: str, target: str | None, as_json: bool, **told: Any) -> None:
    """Writes the rule, and shows it."""
    from stoker.cli.rule_text import rule_text
    from stoker.cli.show import say_json
    from stoker.config import find_paths
    from stoker.flows.rule_adding import Draft, add_rule

    draft = Draft(id=rule_id, **told)
    rule = add_rule(find_paths(), target, draft)
    if as_json:
        say_json(rule)
    else:
        click.echo(rule_text(rule))


COMMAND = add
