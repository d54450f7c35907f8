"""`stoker switch`: put a service in the place of others."""

from __future__ import annotations

import click

HELP = """Put a service in the place of those that leave it no room or are of its group, and wait until it has answered.

Those that go may end the requests they are answering (limits.drain_s), then stop; the service starts once their memory is
back. If it does not become READY, what ran before is started again, and the exit code tells.

TARGET is what `stoker up` takes.

\b
Example:
  stoker switch coder
  stoker switch voxtral --json
  stoker switch coder --on spark-b    a service of that box's stoker.toml
"""


@click.command(help=HELP, short_help="Stop what is in the way, then serve; roll back if that fails.")
@click.argument("target")
@click.option("--on", "box", help="A linked box, instead of this one.")
@click.option("--json", "as_json", is_flag=True, help="Print how the switch ended as JSON.")
def switch(target: str, box: str | None, as_json: bool) -> None:
    """Begins the switch and shows its steps."""
    from stoker.cli.switch_text import show_switch
    from stoker.config import find_paths, read_config
    from stoker.flows.planning import find_wish
    from stoker.flows.up import daemon_for_wish, is_known_by_name_alone

    paths = find_paths()
    if box is not None:
        from stoker.flows.boxes.linked import find_linked

        there = find_linked(paths, box, act=True)
        show_switch(there, there.switch_to(target), as_json)
        return
    config = read_config(paths.config)
    wish = None if is_known_by_name_alone(paths, target, config) else find_wish(target, config)
    with daemon_for_wish(paths) as daemon:
        view = daemon.switch_to(target) if wish is None else daemon.switch(wish)
    show_switch(daemon, view, as_json)


COMMAND = switch
