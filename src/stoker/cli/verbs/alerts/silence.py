"""`stoker alerts silence`: keeps an alert quiet for a while."""

from __future__ import annotations

import click

from stoker.cli.kinds import seconds

HELP = """Do not tell of an alert for a while; it is watched and shown all the same. `*` is every alert.

\b
Example:
  stoker alerts silence accept-rate-dropped coder --for 2h
  stoker alerts silence "*" --for 8h
  stoker alerts silence accept-rate-dropped coder --end
"""

MINUTE_S = 60


@click.command(help=HELP, short_help="Do not tell of an alert for a while.")
@click.argument("alert")
@click.argument("about", default="*")
@click.option("--for", "for_s", type=seconds, default="2h", metavar="TIME", help="For how long: 30m, 2h, 7d.")
@click.option("--end", is_flag=True, help="Tell of it again from now on.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def silence(alert: str, about: str, for_s: float, end: bool, as_json: bool) -> None:
    """Prints the silences that last."""
    import math
    import time

    from stoker.cli.show import duration, say_json
    from stoker.config import find_paths
    from stoker.flows import alerts as flow

    silences = flow.silence(find_paths(), alert, about, 0.0 if end else for_s)
    if as_json:
        say_json(silences)
        return
    for one in silences:
        left_s = math.ceil((one.until - time.time()) / MINUTE_S) * MINUTE_S  # what was asked for, not a moment less
        click.echo(f"{one.id} about {one.about} is not told of for {duration(left_s)}")
    if not silences:
        click.echo("Every alert is told of.")


COMMAND = silence
