"""`stoker uninstall`: how to undo an installation."""

from __future__ import annotations

import click

HELP = """Show the commands that take a service's unit and sudoers lines away again.

They undo what `stoker install` had you do for that service, as far as it is there. The daemon's unit goes with the last
service. Models, state and stoker.toml stay.

\b
Example:
  stoker uninstall demo --dry-run
  stoker uninstall coder --user alice --dry-run --json
"""


@click.command(help=HELP, short_help="Show how to undo `stoker install`.")
@click.argument("service")
@click.option("--user", help="Who runs the daemon; else you.")
@click.option("--system-unit-dir", default="/etc/systemd/system", show_default=True, help="Where the units are.")
@click.option("--dry-run", is_flag=True, help="Print the commands; nothing is changed.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def uninstall(service: str, user: str | None, system_unit_dir: str, dry_run: bool, as_json: bool) -> None:
    """Prints the commands."""
    from stoker.cli.show import say_json
    from stoker.errors import Refused
    from stoker.flows.uninstall import show_uninstall

    view = show_uninstall(service, user, system_unit_dir)
    if not dry_run:
        raise Refused(
            "`stoker uninstall` only prints; nothing was changed",
            why="what root runs and allows is root's to change, and Stoker never runs as root",
            next_step="add --dry-run, and run what it prints",
        )
    if as_json:
        say_json(view)
        return
    click.echo("\n".join(view.commands) or f"nothing of {service} is installed")
    for what in view.kept:
        click.echo(click.style(f"# {what}", dim=True))


COMMAND = uninstall
