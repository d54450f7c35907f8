"""`stoker alerts list`: what is wrong now, and what was."""

from __future__ import annotations

import click

from stoker.cli.kinds import seconds

HELP = """Show what is wrong now, and what was. This is what `stoker alerts` alone does.

\b
Example:
  stoker alerts list --since 7d
"""
WRONG = ("warning", "critical")


@click.command(help=HELP, short_help="Show what is wrong now, and what was.")
@click.option("--since", "since_s", type=seconds, default="24h", metavar="TIME", help="Also what was so: 12h, 7d, 4w.")
@click.option("--all", "is_all", is_flag=True, help="Show what is watched instead, with the evidence.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_alerts(since_s: float, is_all: bool, as_json: bool) -> None:
    """Prints the alerts; ends with 1 where something is wrong."""
    import sys
    import time

    from stoker.cli.show import say_json
    from stoker.cli.watch_text import acts_text, alerts_text, rules_text
    from stoker.config import find_paths
    from stoker.flows import alerts as flow

    if is_all:
        rules = flow.list_rules()
        return say_json(rules) if as_json else click.echo(rules_text(rules))
    paths, since = find_paths(), time.time() - since_s
    alerts, acts = flow.list_alerts(paths, since), flow.list_acts(paths, since)
    if as_json:
        say_json({"alerts": alerts, "acts": acts})
    else:
        click.echo("\n\n".join(part for part in (alerts_text(alerts), acts_text(acts)) if part))
    if any(one.state == "firing" and one.severity in WRONG and one.silenced_until is None for one in alerts):
        sys.exit(1)
    return None


COMMAND = list_alerts
