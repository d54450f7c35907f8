"""`stoker rules [RULE]`: what is known, and how well."""

from __future__ import annotations

import click


@click.command(short_help="Show one rule, or a list of them; what `stoker rules` alone does.")
@click.argument("rule_id", required=False)
@click.option("--search", help="Only rules that speak of all these words.")
@click.option("--engine", help="Only rules that can concern this engine.")
@click.option("--filters", is_flag=True, help="The gateway's filters instead: what a service may opt in to, and why.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(rule_id: str | None, search: str | None, engine: str | None, filters: bool, as_json: bool) -> None:
    """Prints one rule, or a list of them."""
    if filters:
        _say_filters(rule_id, search, engine, as_json)
        return
    from stoker.cli.rule_text import list_text, rule_text
    from stoker.cli.show import say_json
    from stoker.rules.load import find_rule, load_rules, search_rules

    if rule_id is not None:
        rule = find_rule(rule_id)
        if as_json:
            say_json(rule)
        else:
            click.echo(rule_text(rule))
        return
    found = search_rules(search) if search else list(load_rules(engine))
    if as_json:
        say_json(found)
    else:
        click.echo(list_text(found))


def _say_filters(name: str | None, search: str | None, engine: str | None, as_json: bool) -> None:
    from stoker.cli.filter_text import filters_text
    from stoker.cli.show import say_json
    from stoker.gateway.filters import find, names

    if search or engine:
        raise click.UsageError("--filters goes with neither --search nor --engine.")
    found = [find(one).view() for one in ([name] if name else names())]
    if as_json:
        say_json(found)
    else:
        click.echo(filters_text(found))


COMMAND = show
