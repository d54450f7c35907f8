"""A switch as people see it: its steps as they come, and how it ended."""

from __future__ import annotations

import click

from stoker.cli.show import say_json
from stoker.flows.client import Daemon
from stoker.flows.switch import check_switched, follow_switch
from stoker.records import SwitchView


def show_switch(daemon: Daemon, view: SwitchView, as_json: bool) -> None:
    """Shows a switch until it has ended; raises the error that fits where it did not lead to where it should."""
    shown = 0
    for now in follow_switch(daemon, view):
        for step in () if as_json else now.steps[shown:]:
            click.echo(step)
        view, shown = now, len(now.steps)
    check_switched(view)
    if as_json:
        say_json(view)
    else:
        click.echo(view.why)
