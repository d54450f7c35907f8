"""`stoker down`: stop a service, or everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from stoker.flows.control import Daemon
    from stoker.records import ServiceView

HELP = """Stop a service and wait until its memory is back; without a name stop all of them and the daemon.

Requests that are being answered may end first (limits.drain_s).

\b
Example:
  stoker down
  stoker down demo
  stoker down demo --forget    it is not listed any more
"""


@click.command(help=HELP, short_help="Stop a service, or all of them and the daemon.")
@click.argument("service", required=False)
@click.option("--forget", is_flag=True, help="Drop the service from the list too; no file of its model is touched.")
@click.option("--json", "as_json", is_flag=True, help="Print the stopped services as JSON.")
def down(service: str | None, forget: bool, as_json: bool) -> None:
    """Stops services, one after the other."""
    from stoker.cli.show import say_json
    from stoker.config import find_paths
    from stoker.flows.control import find_daemon
    from stoker.flows.down import stop_daemon
    from stoker.flows.status import end_unattended

    paths = find_paths()
    daemon = find_daemon(paths)
    if daemon is None:
        ended = end_unattended(paths, service)
        if as_json:
            say_json(ended)
        else:
            click.echo("The daemon is not running." + (f" Ended without it: {', '.join(ended)}." if ended else ""))
        return
    names = [service] if service else [view.name for view in daemon.status().services]
    stopped = [_stop(daemon, name, forget, as_json) for name in names]
    if service is None:
        stop_daemon(paths, daemon)
        if not as_json:
            click.echo("The daemon has ended.")
    if as_json:
        say_json(stopped)


COMMAND = down


def _stop(daemon: Daemon, name: str, forget: bool, quiet: bool) -> ServiceView:
    """Stops one service, showing each state it passes through."""
    from stoker.cli.show import change
    from stoker.flows.down import stop_service

    views: list[ServiceView] = []
    for view in stop_service(daemon, name):
        views.append(view)
        if not quiet:
            click.echo(change(view))
    if forget:
        daemon.forget(name)
    return views[-1]
