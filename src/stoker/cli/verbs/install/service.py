"""`stoker install SERVICE`: the units and the sudoers lines for a service."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from stoker.records import InstallView

HELP = """Show the systemd units and the sudoers lines that run a service from boot on.

One unit for the daemon, one for the service, and a sudoers file that allows its user to start, stop and restart that one
unit without a password, and the daemon that of a service with a `unit`. This verb only prints them: Stoker never runs as
root, so putting them in place stays with you. --verify checks what is in place against what would be printed now, and
that the service comes back after a reboot; exit code 1 if not.

\b
Example:
  stoker install demo --dry-run
  stoker install coder --user alice --dry-run
  stoker install coder --verify
  stoker install coder --dry-run --json
"""


@click.command(help=HELP, short_help="Show the units and sudoers lines for a service.")
@click.argument("service")
@click.option("--user", help="Who runs the daemon and may use the unit; else you.")
@click.option("--system-unit-dir", default="/etc/systemd/system", show_default=True, help="Where units belong.")
@click.option("--dry-run", is_flag=True, help="Print the files; nothing is changed.")
@click.option("--verify", is_flag=True, help="Check what is in place; nothing is changed.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def service_files(service: str, user: str | None, system_unit_dir: str, dry_run: bool, verify: bool, as_json: bool) -> None:
    """Prints the files, or says how to put them in place."""
    from stoker.cli.show import say_json
    from stoker.errors import Refused
    from stoker.flows.install import show_install

    if verify:
        _verify(service, user, system_unit_dir, as_json)
        return
    view = show_install(service, user, system_unit_dir)
    if view.refused and not dry_run:
        raise Refused(view.refused)
    if not dry_run:
        raise Refused(
            "`stoker install` only prints for now; nothing was changed",
            why="it would change what root runs and allows, and that deserves your own eyes first",
            next_step="add --dry-run, save each file it prints under its name, and run there: " + "; ".join(view.commands),
        )
    if as_json:
        say_json(view)
    else:
        click.echo(_text(view))


COMMAND = service_files


def _verify(service: str, user: str | None, system_unit_dir: str, as_json: bool) -> None:
    from stoker.cli.show import say_json
    from stoker.flows.install_check import verify_install

    view = verify_install(service, user, system_unit_dir)
    if as_json:
        say_json(view)
    for found in () if as_json else view.findings:
        click.echo(f"{click.style(found.what, fg='red')}\n{_indented(found.why)}  next: {found.fix}")
    for what in () if as_json else view.unknown:
        click.echo(click.style(f"unknown: {what}", dim=True))
    if not view.findings and not as_json:
        click.echo(f"{service} is installed as it would be now, and comes back after a reboot")
    raise SystemExit(1 if view.findings else 0)


def _indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.splitlines())


def _text(view: InstallView) -> str:
    """Returns the files, each below its path and mode, and the commands that put them in place."""
    blocks = [f"{click.style(f'==> {file.path}  (mode {file.mode})', bold=True)}\n{file.text}" for file in view.files]
    steps = "\n".join(f"  {command}" for command in view.commands)
    if view.refused:
        return "\n".join([*blocks, f"This is only shown, and refused for {view.user}: {view.refused}"])
    return "\n".join(
        [*blocks, f"To put them in place, save each file under its name in an empty folder, and run there:\n{steps}"]
    )
