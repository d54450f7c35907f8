"""`stoker rules [RULE]`: what is known, and how well."""

from __future__ import annotations

import click


@click.command(short_help="Show one rule, or a list of them; what `stoker rules` alone does.")
@click.argument("rule_id", required=False)
@click.option("--search", help="Search rules, pages and your own notes for these words.")
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
    from stoker.rules.load import find_rule, load_rules

    if search is not None:
        _say_found(rule_id, search, engine, as_json)
        return
    if rule_id is not None:
        rule = find_rule(rule_id)
        if as_json:
            say_json(rule)
        else:
            click.echo(rule_text(rule))
        return
    found = list(load_rules(engine))
    if as_json:
        say_json(found)
    else:
        click.echo(list_text(found))


def _say_found(rule_id: str | None, query: str, engine: str | None, as_json: bool) -> None:
    from stoker.cli.knowledge_text import found_text
    from stoker.cli.show import say_json
    from stoker.config import find_paths
    from stoker.flows.knowledge import search_knowledge

    if rule_id or engine:
        raise click.UsageError("--search goes with neither a rule's name nor --engine; add the engine to the words.")
    found = search_knowledge(find_paths(), query)
    if as_json:
        say_json(found)
    else:
        click.echo(found_text(found))


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
