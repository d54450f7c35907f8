"""`stoker up`: from nothing to a model that answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stoker import __version__
from stoker.cli.kinds import tokens

if TYPE_CHECKING:
    from stoker.config import Paths
    from stoker.flows.client import Daemon
    from stoker.records import ServiceView

HELP = """Serve a model, and wait until it has really answered.

TARGET is a service of stoker.toml, or one that `stoker status` lists; a GGUF file, a model's folder, or a hub name whose
files are in the local cache; without it the bundled demo model is served.
A daemon is started where none runs.

\b
Example:
  stoker up
  stoker up ~/models/qwen3-8b-q4_k_m.gguf --context 8192
  stoker up demo --speculation draft
  stoker up coder --on spark-b    a service of that box's stoker.toml
"""

SPECULATIONS = ("auto", "off", "ngram", "draft", "eagle", "eagle3", "mtp")


@click.command(help=HELP, short_help="Serve a model: the demo, a service, a file or a folder.")
@click.argument("target", required=False)
@click.option("--on", "box", help="A linked box, instead of this one; TARGET is one of its services.")
@click.option("--name", help="The service's name; else it is made from the file's.")
@click.option("--served-name", help="The name by which clients ask for the model; else the service's.")
@click.option("--engine", help="llamacpp, sglang or vllm; else the plan chooses.")
@click.option("--server", help="A llama-server program of yours, instead of the embedded engine.")
@click.option("--port", type=click.IntRange(1, 65535), help="The engine's own port; else a free one.")
@click.option("--context", type=tokens, help="Tokens a request may use: 32768, 32k or 32K.")
@click.option("--parallel", type=int, help="Requests answered at once.")
@click.option("--gpu-layers", type=int, help="Layers on the GPU; else the engine decides.")
@click.option("--threads", type=click.IntRange(1, 1024), help="Processor threads; else the engine decides.")
@click.option("--speculation", type=click.Choice(SPECULATIONS), help="Speculative decoding.")
@click.option("--draft", help="The draft model for --speculation draft.")
@click.option("--draft-tokens", type=click.IntRange(1, 64), help="Tokens drafted a step.")
@click.option("--reasoning", type=click.Choice(["auto", "on", "off"]), help="Whether the model thinks when not told.")
@click.option("--json", "as_json", is_flag=True, help="Print the service as JSON once it is READY.")
def up(target: str | None, box: str | None, as_json: bool, **options: object) -> None:
    """Starts a daemon where needed, then the service, then asks it a question."""
    from stoker.cli.show import say_json
    from stoker.config import find_paths, read_config
    from stoker.flows.planning import draft_beside, find_wish, with_options
    from stoker.flows.up import check_as_it_was, check_ready, daemon_for_wish, is_known_by_name_alone

    paths = find_paths()
    if box is not None:
        _up_there(paths, box, target, as_json, options)
        return
    config = read_config(paths.config)
    wish = None
    if target is not None and is_known_by_name_alone(paths, target, config):
        check_as_it_was(target, options)
    else:
        wish = with_options(find_wish(target, config), options)
    with daemon_for_wish(paths) as daemon:
        _warn_of_other_version(daemon)
        begun = daemon.start(str(target)) if wish is None else daemon.up(wish)
    if wish is not None and not as_json and (draft := draft_beside(wish)):
        click.echo(f"{draft.name} lies beside the model and drafts for it; `--speculation off` leaves it out")
    view = _follow(daemon, begun, quiet=as_json)
    check_ready(view, daemon.tail(view.name, 12))
    if as_json:
        say_json(view)
        return
    if not view.answers:
        return
    _prove(daemon, view)
    _say_next(daemon, view, paths)


COMMAND = up


def _warn_of_other_version(daemon: Daemon) -> None:
    """Says when the daemon was started by another version of Stoker than this command."""
    running = daemon.status().daemon.version
    if running != __version__:
        text = f"the daemon runs version {running}, this command is {__version__}: `stoker down`, then `stoker up` again"
        click.echo(click.style(text, fg="yellow"), err=True)


def _up_there(paths: Paths, box: str, target: str | None, as_json: bool, options: dict[str, object]) -> None:
    """Has another box start a service of its own."""
    from stoker.cli.show import say_json
    from stoker.errors import WrongUse
    from stoker.flows.boxes.linked import find_linked
    from stoker.flows.up import check_ready

    given = [f"--{name.replace('_', '-')}" for name, value in options.items() if value is not None]
    if target is None or given:
        raise WrongUse(
            f"`up --on {box}` starts a service of that box's stoker.toml, as it is written there",
            why=f"{', '.join(given)} would change it" if given else "none was named",
            next_step=f"stoker up SERVICE --on {box}",
        )  # fmt: skip
    daemon = find_linked(paths, box, act=True)
    view = _follow(daemon, daemon.start(target), quiet=as_json)
    check_ready(view, daemon.tail(view.name, 12))
    if as_json:
        say_json(view)


def _follow(daemon: Daemon, view: ServiceView, quiet: bool) -> ServiceView:
    """Shows each state the service passes through, and returns the last; why it failed, the error behind it says."""
    import msgspec

    from stoker.cli.show import change as describe
    from stoker.flows.up import follow
    from stoker.records import AT_REST, State

    for change in follow(daemon, view):
        failed = change.state in AT_REST and change.state is not State.READY
        ends = change.state is State.STOPPING and change is not view
        shown = msgspec.structs.replace(change, why="") if ends else change
        if not quiet and not failed:
            click.echo(describe(shown, is_step=change is not view and change.state is view.state))
        view = change
    return view


def _prove(daemon: Daemon, view: ServiceView) -> None:
    """Asks through the gateway, as every client will: this is the first real token."""
    from stoker.flows.ask import ask

    first = next(ask(daemon, view.model, "Who are you?", think=False, max_tokens=24, temperature=0), None)
    if first is not None:
        click.echo(f"{view.name}  answered through the gateway; first token after {first.after_s * 1000:.0f} ms")


def _say_next(daemon: Daemon, view: ServiceView, paths: Paths) -> None:
    from stoker.cli.show import command_name
    from stoker.records import State

    status = daemon.status()
    url = status.gateway.url  # what clients keep: where that speaks TLS, the verbs' own port is another one at each start
    stoker, others = command_name(), [one for one in status.services if one.state is State.READY]
    model = f" --model {view.model}" if len(others) > 1 else ""
    body = f'{{"model": "{view.model}", "messages": [{{"role": "user", "content": "Who are you?"}}]}}'
    click.echo(f"""
  address  {url}
  page     {url.removesuffix("v1")}   (log in with: cat {paths.control_key_file})
  model    {view.model}
  key      {daemon.key}   (kept in {paths.key_file})

Try it:
  curl {url}/chat/completions \\
    -H "Authorization: Bearer $(cat {paths.key_file})" \\
    -H "Content-Type: application/json" \\
    -d '{body}'

Then:
  {stoker} ask{model} "Who are you?"
  {stoker} status
  {stoker} up MODEL.gguf
  {stoker} down""")
