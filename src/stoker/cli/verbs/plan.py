"""`stoker plan`: which flags, why each of them, and whether it fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stoker.cli.kinds import names, tokens

if TYPE_CHECKING:
    from stoker.config import Paths
    from stoker.records import Wish

HELP = """Show how a model would be served: every flag with who chose it, the memory it takes, and what is known to go wrong.

TARGET is a service of stoker.toml, a model's folder or GGUF file, or a hub name whose files are in the local cache.
Nothing is started. Exit code 3 means that a rule forbids the plan, or that it does not fit.

\b
Example:
  stoker plan ~/models/mistral-small-4-nvfp4 --draft ~/models/mistral-small-4-eagle --explain
  stoker plan coder --on gb10-64 --context 32768
  stoker plan coder --render docker
  stoker plan coder --on spark-b             how a linked box runs its service of that name
  stoker plan coder --boxes a,b

Over several boxes (--boxes, or `boxes` of the service) it shows sharing the model, a pipeline, a copy on each and one box
side by side, with what each should give, and refuses what can only be slower. --render then prints argv, docker or podman
of each rank.
"""

FORMS = ("argv", "docker", "podman", "compose", "quadlet", "unit", "dockerfile")
SPLITS = ("auto", "tensor", "pipeline", "replicas")
SPECULATIONS = ("auto", "off", "ngram", "draft", "eagle", "eagle3", "mtp")


@click.command(help=HELP, short_help="Show the flags for a model, and why each.")
@click.argument("target", required=False)
@click.option("--on", "box", help="this (unless said), gb10, gb10-64, h200, pc, a file, or a linked box.")
@click.option(
    "--boxes", type=names, help="Spread it over these, the head first: this, a name, or a file of `stoker facts --json`."
)
@click.option("--split", type=click.Choice(SPLITS), help="How boxes share it; else the plan chooses.")
@click.option("--executor", type=click.Choice(["mp", "ray"]), help="What starts vLLM's processes on the boxes.")
@click.option("--engine", help="The engine: sglang, vllm or llamacpp; else the plan chooses.")
@click.option("--image", help="The container image to run it in.")
@click.option("--version", "version", help="The engine's version, where neither image nor installation tells it.")
@click.option("--context", type=tokens, help="Tokens a request may use: 32768, 32k or 32K.")
@click.option("--concurrency", "parallel", type=int, help="Requests answered at once.")
@click.option(
    "--speculation", type=click.Choice(["auto", "off", "ngram", "draft", "eagle", "eagle3", "mtp"]), help="How to draft."
)
@click.option("--draft", help="The draft model's folder, file or hub name.")
@click.option("--draft-tokens", type=click.IntRange(1, 64), help="Tokens drafted a step.")
@click.option("--memory-share", type=float, help="The share of the memory that the engine may take.")
@click.option("--explain", is_flag=True, help="Show each flag's reason with its evidence, and how the memory was counted.")
@click.option("--alternatives", is_flag=True, help="Show the other ways to serve the model that somebody measured.")
@click.option("--render", type=click.Choice(FORMS), help="Print only the launch; a file that it names is written.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def plan(
    target: str | None,
    box: str | None,
    explain: bool,
    alternatives: bool,
    render: str | None,
    as_json: bool,
    **options: object,
) -> None:
    """Plans and prints."""
    from stoker.cli.plan_text import plan_text
    from stoker.cli.show import say_json
    from stoker.config import find_paths, read_config
    from stoker.errors import WrongUse
    from stoker.flows.planning import find_wish, report_on, with_options
    from stoker.flows.running import read_claims
    from stoker.plan.report import report_without_secrets

    paths = find_paths()
    if target is not None and box is not None and _is_linked(paths, box):
        _show_there(paths, box, target, as_json)
        return
    wish = with_options(find_wish(target, read_config(paths.config)), options)
    if options.get("boxes") and box is not None:
        raise WrongUse("--on names one machine, and --boxes several", next_step="leave one of the two out")
    if wish.boxes and box is None:
        _plan_spread(wish, explain, render, as_json)
        return
    box = box or "this"
    running = read_claims(paths) if box == "this" else ()
    report = report_on(wish, box, running)
    if render is not None:
        from stoker.flows.rendering import render_launch_text

        click.echo(render_launch_text(report, render, is_here=box == "this").rstrip())
    elif as_json:
        say_json(report_without_secrets(report))
    else:
        click.echo(plan_text(report, box, explain=explain, alternatives=alternatives))
    if any(finding.level == "forbid" for finding in report.findings):
        raise SystemExit(3)


def _plan_spread(wish: Wish, explain: bool, render: str | None, as_json: bool) -> None:
    from stoker.cli.show import say_json
    from stoker.cli.spread_text import spread_text
    from stoker.flows.spreading import render_ranks, spread_on, spread_without_secrets

    report = spread_on(wish)
    if render is not None:
        click.echo(render_ranks(report, render))
    elif as_json:
        say_json(spread_without_secrets(report))
    else:
        click.echo(spread_text(report, explain))
    if any(finding.level == "forbid" for finding in report.findings):
        raise SystemExit(3)


COMMAND = plan


def _is_linked(paths: Paths, box: str) -> bool:
    from stoker.flows.boxes.link_file import read_links

    return any(one.name == box for one in read_links(paths.links_file).boxes)


def _show_there(paths: Paths, box: str, service: str, as_json: bool) -> None:
    """Shows the plan by which another box runs a service."""
    from stoker.cli.show import say_json, table
    from stoker.flows.boxes.linked import find_linked

    found = find_linked(paths, box, act=True).plan_of(service)
    if as_json:
        say_json(found)
        return
    click.echo(f"{service} on {box}: {found.model} by the plan {found.plan_id}, revision {found.revision}\n")
    rows = [(one.name, str(one.value), one.because) for one in found.settings]
    click.echo(table(("setting", "value", "because"), rows))
