"""`stoker tune`: the fastest way to draft, with few starts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stoker.cli.bench_words import content, share, slo
from stoker.cli.kinds import seconds, tokens

if TYPE_CHECKING:
    from stoker.flows.tune_asking import Asking
    from stoker.records import Objective

HELP = """Find the fastest way to draft tokens for a service, or a size of its engine, with at most half of the starts that
trying everything takes.

Measures the service without drafts and once with many draft tokens: the engine's counters of that start tell how every
smaller number would do. Only what may well be the best is started then, until one is best beyond doubt or the budget ends.
Each start waits for memory and has to pass the gate. The best way is written into stoker.toml with its evidence, and
`stoker rollback` goes back. Ctrl-C at any time leaves the service and the file as they were.

Whoever uses the service meanwhile is interrupted, and disturbs what is measured. It says first what it is going to do and
how long that may take, and in a terminal it asks; --yes answers.

With --beside nobody is interrupted before the best way is known: where the memory holds both, each way is tried as a second
service, and what runs is asked the same prompt after each of its own: so whatever the machine does meanwhile, hot or cool,
both have it alike.

--knob turns something else than how it drafts: `parallel` (requests at once), `batch_tokens` (of prompts in a step),
`graph_batch` (the largest batch with graphs) or `memory_share` (upwards, in steps of 0.05, until memory is near its floor).

\b
Example:
  stoker tune coder --content code
  stoker tune coder --content code --content prose --budget 30m
  stoker tune coder --objective throughput --concurrency 8
  stoker tune coder --only eagle3 --only ngram
  stoker tune coder --beside
  stoker tune coder --knob batch_tokens --pp 4096
  stoker tune coder --dry-run
"""
MANY = 8
FAMILY_NAMES = ("ngram", "draft", "eagle", "eagle3", "mtp", "trees", "adaptive", "lookups")
KNOBS = ("drafts", "parallel", "batch_tokens", "graph_batch", "memory_share")


@click.command(help=HELP, short_help="Find the fastest way to draft, or a size, with few starts.")
@click.argument("service", required=False)
@click.option("--knob", type=click.Choice(KNOBS), default="drafts", help="What to turn. [drafts]")
@click.option(
    "--only", multiple=True, type=click.Choice(FAMILY_NAMES), metavar="KIND",
    help=f"Try ways of this kind alone, beside off: {', '.join(FAMILY_NAMES)}; several. [all that there are]",
)  # fmt: skip
@click.option(
    "--objective", type=click.Choice(["single", "throughput", "goodput"]),
    help="Fast for one request, for many together, or for those within --slo. [single; throughput for sizes]",
)  # fmt: skip
@click.option(
    "--content", "contents", type=content, multiple=True, metavar="KIND",
    help="code, prose, chat, or a text file; several, and it shall be fast for all. [prose]",
)  # fmt: skip
@click.option("--budget", "budget_s", type=seconds, default="30m", metavar="TIME", help="How long it may take. [30m]")
@click.option("--measure", "measure_s", type=seconds, default="60s", metavar="TIME", help="How long each is measured. [60s]")
@click.option("--precision", type=share, default="3%", metavar="SHARE", help="Or until it is as precise as this. [3%]")
@click.option("--pp", type=tokens, default="512", metavar="N", help="Tokens of the prompt. [512]")
@click.option("--tg", type=tokens, default="256", metavar="N", help="New tokens to be generated. [256]")
@click.option(
    "--concurrency", type=click.IntRange(1, 4096), multiple=True,
    help="Requests at once; several, and it shall be fast at each. [1, for throughput and goodput 8]",
)  # fmt: skip
@click.option("--slo", "limits", type=slo, metavar="LIMITS", help="For goodput: ttft=500ms,itl=50ms,e2e=10s.")
@click.option("--seed", type=int, default=1, help="The same seed asks the same prompts. [1]")
@click.option("--beside", is_flag=True, help="Leave it up, and try each way as a second service, asked in turn with it.")
@click.option("--fresh", is_flag=True, help="Measure what was measured today again.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Draw it, too: a .html or .svg file.")
@click.option("--dry-run", is_flag=True, help="Say what it would try and how long that takes.")
@click.option("--yes", is_flag=True, help="Begin without asking.")
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
def tune(service: str | None, output: Path | None, dry_run: bool, yes: bool, as_json: bool, **asked: Any) -> None:
    """Tunes, and shows the curve."""
    from stoker.cli.show import say_json
    from stoker.cli.tune_text import Teller, view_text
    from stoker.config import find_paths, read_config
    from stoker.flows import tune as flow

    if output is not None and output.suffix not in flow.PICTURES:
        raise click.UsageError(f"{output} says not what to write: let its name end in .html or .svg")
    asking, paths = _asking(asked), find_paths()
    config = read_config(paths.config)
    view = flow.plan_tuning(paths, config, service, asking)
    if not dry_run:
        teller = Teller(is_silent=as_json)
        teller.begin(view, asking, says_yes=yes, is_named=service is not None)
        view = flow.tune(paths, config, view.service, asking, teller.talk())
        teller.close()
    if as_json:
        say_json(view)
    else:
        click.echo(view_text(view))
    if output is not None:
        flow.write_picture(view, output)
    raise SystemExit(0 if dry_run or view.chosen is not None else 1)


COMMAND = tune


def _asking(asked: dict[str, Any]) -> Asking:
    from stoker.flows.tune_asking import Asking

    if (asked["objective"] == "goodput") != (asked["limits"] is not None):
        raise click.UsageError("goodput counts requests within --slo, and nothing else does: give both or none")
    sizes = asked["knob"] != "drafts"
    if sizes and asked["only"]:
        raise click.UsageError(f"--only is for ways to draft, and {asked['knob']} is a size")
    if sizes and asked["objective"] == "single":
        raise click.UsageError("sizes are for many requests together: leave --objective out, or say throughput or goodput")
    objective: Objective = asked["objective"] or ("throughput" if sizes else "single")
    alone = objective == "single"
    if alone and asked["concurrency"] not in ((), (1,)):
        raise click.UsageError("--concurrency is for --objective throughput or goodput: single is one request at a time")
    concurrency = tuple(dict.fromkeys(asked["concurrency"])) or ((1,) if alone else (MANY,))
    return Asking(
        knob=asked["knob"], objective=objective, contents=tuple(dict.fromkeys(asked["contents"])) or ("prose",),
        budget_s=asked["budget_s"], prompt_tokens=asked["pp"], new_tokens=asked["tg"],
        concurrency=concurrency, slo=asked["limits"], measure_s=asked["measure_s"],
        precision=asked["precision"], seed=asked["seed"], fresh=asked["fresh"], only=asked["only"], beside=asked["beside"],
    )  # fmt: skip
