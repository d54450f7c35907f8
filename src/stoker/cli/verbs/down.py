"""`stoker down`: stop a service, or everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from stoker.config import Paths
    from stoker.flows.client import Daemon

HELP = """Stop a service and wait until its memory is back; without a name stop all of them and the daemon.

Requests that are being answered may end first (limits.drain_s).

\b
Example:
  stoker down
  stoker down demo
  stoker down demo --forget    it is not listed any more
  stoker down demo --on spark-b
"""


@click.command(help=HELP, short_help="Stop a service, or all of them and the daemon.")
@click.argument("service", required=False)
@click.option("--forget", is_flag=True, help="Drop the service from the list too; no file of its model is touched.")
@click.option("--on", "box", help="A linked box, instead of this one; name the service.")
@click.option("--json", "as_json", is_flag=True, help="Print the stopped services as JSON.")
def down(service: str | None, forget: bool, box: str | None, as_json: bool) -> None:
    """Stops services, one after the other."""
    from stoker.cli.show import say_json
    from stoker.config import find_paths, read_config
    from stoker.flows.client import find_daemon
    from stoker.flows.down import end_unattended

    paths = find_paths()
    if box is not None:
        _stop_there(paths, box, service, forget, as_json)
        return
    daemon = find_daemon(paths)
    if daemon is not None:
        _stop(paths, daemon, service, forget, as_json)
        return
    ended = end_unattended(paths, service, read_config(paths.config).limits)
    if as_json:
        say_json(ended)
    else:
        click.echo("The daemon is not running." + (f" Ended without it: {', '.join(ended)}." if ended else ""))


COMMAND = down


def _stop_there(paths: Paths, box: str, service: str | None, forget: bool, as_json: bool) -> None:
    """Stops one service of another box."""
    from stoker.errors import WrongUse
    from stoker.flows.boxes.linked import find_linked

    if service is None or forget:
        raise WrongUse("another box is asked to stop one service, by its name", next_step=f"stoker down SERVICE --on {box}")
    _stop(paths, find_linked(paths, box, act=True), service, False, as_json)


def _stop(paths: Paths, daemon: Daemon, service: str | None, forget: bool, as_json: bool) -> None:
    """Stops one service, or all and the daemon, showing each state they pass through."""
    from stoker.cli.show import change, say_json
    from stoker.flows.down import stop_all, stop_daemon, stop_service

    stopped = {}
    for view in stop_service(daemon, service) if service else stop_all(paths, daemon):
        stopped[view.name] = view
        if not as_json:
            click.echo(change(view))
    for name in stopped if forget else ():
        daemon.forget(name)
    if service is None:
        stop_daemon(paths, daemon)
    if as_json:
        say_json(list(stopped.values()))
    elif service is None:
        click.echo("The daemon has ended.")
