"""`stoker boxes`: several boxes behind one door."""

from __future__ import annotations

import sys

import click

HELP = """Join other boxes, so that this one's door answers for their models too.

Each box runs its own daemon. A box that others shall reach has `host` in its [boxes] table. Links are TLS with the
certificate pinned when they are made, and each has a key of its own.

\b
Example:
  stoker boxes code                               on the box that shall be reached
  stoker boxes add spark-b https://10.0.0.2:8701  on the box whose door clients use; asks for the code
  stoker boxes status --json
  stoker up coder --on spark-b
  stoker boxes remove spark-b
"""
CODE = """Print a code by which one other box's door may join this box: good once, for ten minutes.

Without --act whoever joins may ask this box's models and see what it serves. With it, he may also start, stop and switch
the services that stoker.toml has here, and read their logs.

\b
Example:
  stoker boxes code
  stoker boxes code --act
"""
ADD = """Join another box; the code is asked for, or read from standard input where that is no terminal.

\b
Example:
  stoker boxes add spark-b https://10.0.0.2:8701
  ssh spark-b stoker boxes code --json | jq -r .code | stoker boxes add spark-b https://10.0.0.2:8701
"""
LIST = """Show the boxes that this door reaches, and the doors that may come here.

\b
Example:
  stoker boxes list
  stoker boxes list --json
"""
STATUS = """Show each box: whether it is heard, since when, and what it serves by which revision and plan.

\b
Example:
  stoker boxes status
"""
REMOVE = """End the link to a box at once, and that of its door to this one; requests that run over it end with an error.

\b
Example:
  stoker boxes remove spark-b
"""
CODE_LIMIT_BYTES = 256


@click.group(help=HELP, short_help="Join other boxes behind one door.")
def boxes() -> None:
    """Holds the five commands."""


COMMAND = boxes


@boxes.command(help=CODE, short_help="Print a code by which another box may join this one.")
@click.option("--act", "may_act", is_flag=True, help="Who joins may start, stop and switch services, and read logs.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def code(may_act: bool, as_json: bool) -> None:
    """Makes a join code."""
    from stoker.cli.show import say_json
    from stoker.config import find_paths
    from stoker.flows.up import ensure_daemon

    made = ensure_daemon(find_paths()).join_code(may_act=may_act)
    if as_json:
        say_json(made)
        return
    click.echo(made.code)
    click.echo(
        f"good once, for {made.good_s / 60:g} minutes; on the other box: stoker boxes add NAME {made.address}", err=True
    )


@boxes.command(help=ADD, short_help="Join another box by its code.")
@click.argument("name")
@click.argument("url")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def add(name: str, url: str, as_json: bool) -> None:
    """Joins a box."""
    from stoker.cli.show import say_json
    from stoker.config import SERVICE_NAME, find_paths
    from stoker.errors import WrongUse
    from stoker.flows.up import ensure_daemon
    from stoker.records.boxes import BoxWish

    if SERVICE_NAME.fullmatch(name) is None:
        raise WrongUse(f"`{name}` cannot be a box's name", next_step="use lower-case letters, digits, '.', '_' and '-'")
    # Never an argument: those are in the process list and in the shell's history.
    is_terminal = sys.stdin.isatty()
    text = click.prompt("code", hide_input=True, err=True) if is_terminal else sys.stdin.read(CODE_LIMIT_BYTES)
    if not text.strip():
        raise WrongUse(
            "no join code came",
            why="it is read from the terminal or from standard input, never as an argument",
            next_step="`stoker boxes code` on that box prints one; give it here, as in `stoker boxes add NAME URL < FILE`",
        )
    view = ensure_daemon(find_paths()).add_box(BoxWish(name, url, text.strip()))
    if as_json:
        say_json(view)
    else:
        click.echo(f"{view.name} is joined; `stoker boxes status` shows what it serves")


@boxes.command("list", help=LIST, short_help="Show the links to and from other boxes.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_boxes(as_json: bool) -> None:
    """Shows the links."""
    _show(as_json, with_replicas=False)


@boxes.command(help=STATUS, short_help="Show which boxes are heard, and what they serve.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(as_json: bool) -> None:
    """Shows the boxes and their replicas."""
    _show(as_json, with_replicas=True)


@boxes.command(help=REMOVE, short_help="End a link.")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print what is left as JSON.")
def remove(name: str, as_json: bool) -> None:
    """Ends a link."""
    from stoker.cli.show import say_json
    from stoker.config import find_paths
    from stoker.flows.up import ensure_daemon

    left = ensure_daemon(find_paths()).remove_box(name)
    if as_json:
        say_json(left)
    else:
        click.echo(f"{name} is linked no more")


def _show(as_json: bool, *, with_replicas: bool) -> None:
    from stoker.cli.box_text import boxes_text, replicas_text
    from stoker.cli.show import say_json
    from stoker.config import find_paths
    from stoker.flows.up import ensure_daemon

    view = ensure_daemon(find_paths()).boxes()
    if as_json:
        say_json(view)
        return
    click.echo(boxes_text(view))
    if with_replicas and view.boxes:
        click.echo(f"\n{replicas_text(view)}")
