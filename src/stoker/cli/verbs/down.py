"""`stoker down`: stop a service, or everything."""

from __future__ import annotations

import click

HELP = """Stop a service and wait until its memory is back; without a name stop all of them and the daemon.

Requests that are being answered may end first (limits.drain_s).

\b
Example:
  stoker down
  stoker down demo
"""


@click.command(help=HELP, short_help="Stop a service, or all of them and the daemon.")
@click.argument("service", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the stopped services as JSON.")
def down(service: str | None, as_json: bool) -> None:
    """Stops services, one after the other."""
    from stoker.cli.show import change, say_json
    from stoker.config import find_paths
    from stoker.flows.control import find_daemon
    from stoker.flows.down import stop_daemon, stop_service
    from stoker.flows.status import end_unattended
    from stoker.records import ServiceView

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
    stopped: list[ServiceView] = []
    for name in names:
        for view in stop_service(daemon, name):
            if not as_json:
                click.echo(change(view))
        stopped.append(view)
    if service is None:
        stop_daemon(paths, daemon)
        if not as_json:
            click.echo("The daemon has ended.")
    if as_json:
        say_json(stopped)


COMMAND = down
