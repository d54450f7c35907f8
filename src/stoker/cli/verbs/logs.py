"""`stoker logs`: what an engine printed."""

from __future__ import annotations

import contextlib
import itertools

import click

HELP = """Print the last lines of a service's engine; with -f go on as it writes.

\b
Example:
  stoker logs demo
  stoker logs demo -f
  stoker logs demo --on spark-b
  stoker logs demo -n 500 --json
"""


@click.command(help=HELP, short_help="Print what an engine said; -f follows.")
@click.argument("service", required=False)
@click.option("-f", "--follow", is_flag=True, help="Go on until Ctrl-C.")
@click.option("-n", "--lines", default=100, show_default=True, type=click.IntRange(1, 100000), help="How many lines.")
@click.option("--on", "box", help="A linked box, instead of this one; name the service.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of lines.")
def logs(service: str | None, follow: bool, lines: int, box: str | None, as_json: bool) -> None:
    """Prints lines from the log file itself, so that it works without a daemon too."""
    from stoker.cli.show import printable, say_json
    from stoker.config import find_paths
    from stoker.flows.logs import find_log, follow_lines, read_tail

    if box is not None:
        tail = _read_there(box, service, follow, lines)
        say_json(tail) if as_json else click.echo("\n".join(map(printable, tail)))
        return
    file = find_log(find_paths(), service)
    if as_json:
        say_json(read_tail(file, lines))
        return
    with contextlib.suppress(KeyboardInterrupt):  # the way out that the help names
        for line in itertools.chain(read_tail(file, lines), follow_lines(file) if follow else ()):
            click.echo(printable(line))


COMMAND = logs


def _read_there(box: str, service: str | None, follow: bool, lines: int) -> list[str]:
    from stoker.config import find_paths
    from stoker.errors import WrongUse
    from stoker.flows.boxes.linked import find_linked

    if service is None or follow:
        raise WrongUse("another box's log is read by the service's name, and not followed", next_step="leave out -f")
    return find_linked(find_paths(), box, act=True).tail(service, lines)
