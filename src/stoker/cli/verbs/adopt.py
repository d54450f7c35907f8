"""`stoker adopt`: take a running engine over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from stoker.records import AdoptView

HELP = """Take over an engine that runs already, without restarting it.

TARGET is the first process of a vLLM, SGLang or llama.cpp server of yours, or the name of a container that runs one, by
whatever tool or hand it was started. How it was called is read and linted, it has to give real tokens, and from then on the
gateway answers for it and `stoker down` ends it with everything that belongs to it (a container is stopped, not removed).
One that does not prove itself is let go as it was. It outlives the daemon. What a process prints goes on where it went
before.

\b
Example:
  stoker adopt 4711
  stoker adopt 4711 --name coder --restart
  stoker adopt sglang-mistral4 --claim-gib 94
"""


@click.command(help=HELP, short_help="Take over an engine that runs already.")
@click.argument("target", metavar="PID|CONTAINER")
@click.option("--name", help="The service's name; else it is made from the model's.")
@click.option("--model-name", help="The name by which the engine knows its model; else it is asked.")
@click.option("--port", type=click.IntRange(1, 65535), help="Where it answers clients; else it is found out.")
@click.option("--claim-gib", type=float, help="The memory it takes, GPU included, where more than the kernel counts.")
@click.option("--restart", is_flag=True, help="Start it again by its own words if it ends; else it is FAILED then.")
@click.option("--json", "as_json", is_flag=True, help="Print the service and the findings as JSON.")
def adopt(
    target: str, name: str | None, model_name: str | None, port: int | None, claim_gib: float | None,
    restart: bool, as_json: bool,
) -> None:  # fmt: skip
    """Hands the process to the daemon and shows how it proves itself."""
    import msgspec

    from stoker.cli.show import change, say_json
    from stoker.config import find_paths
    from stoker.flows.adopting import read_target
    from stoker.flows.up import check_ready, daemon_for_wish, follow
    from stoker.records import AdoptWish

    pid, container = read_target(target)
    wish = AdoptWish(pid, name, model_name, port, claim_gib, restart, container)
    with daemon_for_wish(find_paths()) as daemon:
        adopted = daemon.adopt(wish)
    if not as_json:
        _say(adopted)
    view = adopted.service
    for view in follow(daemon, adopted.service):
        if not as_json:
            click.echo(change(view))
    check_ready(view, daemon.tail(view.name, 12))
    if as_json:
        say_json(msgspec.structs.replace(adopted, service=view))


COMMAND = adopt


def _say(adopted: AdoptView) -> None:
    from stoker.cli.plan_text import findings_lines

    for line in findings_lines(adopted.findings, {}):
        click.echo(line)
    for note in adopted.notes:
        click.echo(click.style(f"note: {note}", dim=True))
