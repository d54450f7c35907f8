"""`stoker bench [measure]`: measures, and prints each cell as it is known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stoker.cli.bench_words import WORDS, Question, content, share, slo
from stoker.cli.kinds import seconds, tokens

if TYPE_CHECKING:
    from stoker.flows.addresses import Address
    from stoker.flows.bench import Wanted
    from stoker.records import BenchSubject, CellResult, Target

HELP = """Measure; the same as `stoker bench` without a command, for a service that is called like one.

\b
Example:
  stoker bench measure compare --pp 512
"""
AT_ONCE, LENGTH, REQUESTS = click.IntRange(1, 4096), click.IntRange(1, 10**7), click.IntRange(1, 10**6)


@click.command(cls=Question, help=HELP, short_help="Measure (what it does without a command).")
@click.argument("service", required=False)
@click.option("--on", "box", help="A linked box, asked through this one's door.")
@click.option("--url", help="Any address, with or without /v1, instead of a service.")
@click.option("--model", help="The model to ask there, if there are several.")
@click.option("--key-file", type=click.Path(path_type=Path), help="The file with the key that it wants.")
@click.option("--engine", "engine_url", help="The engine behind it, whose own counters are to be read.")
@click.option("--engine-key-file", type=click.Path(path_type=Path), help="The file with the engine's own key.")
@click.option("--direct", is_flag=True, help="Ask the service's engine past the gateway.")
@click.option("--pp", type=tokens, multiple=True, metavar="N...", help="Tokens of the prompt. [512]")
@click.option("--tg", type=tokens, multiple=True, metavar="N...", help="New tokens to be generated. [128]")
@click.option("--depth", type=tokens, multiple=True, metavar="N...", help="Tokens of conversation before the prompt. [0]")
@click.option("--concurrency", type=AT_ONCE, multiple=True, metavar="N...", help="Requests kept under way. [1]")
@click.option("--requests", type=REQUESTS, help="Requests a run; else as many as are under way at once, or 16.")
@click.option("--runs", type=click.IntRange(1, 1000), help="Repeats of each cell; else until it is precise.")
@click.option("--precision", type=share, default="5%", metavar="SHARE", help="How wide intervals may be. [5%]")
@click.option("--budget", "budget_s", type=seconds, default="2m", metavar="TIME", help="How long a cell may take. [2m]")
@click.option(
    "--content",
    type=content,
    multiple=True,
    metavar="KIND",
    help="code, prose, chat, or a text file; also several. [prose]",
)
@click.option(
    "--shared-prefix", is_flag=True, help="Let all requests share their past, or their prompt, so that caches help."
)
@click.option("--turns", type=click.IntRange(1, 1000), default=1, help="Turns of each conversation. [1]")
@click.option("--rate", type=float, multiple=True, metavar="R...", help="Requests a second, whatever is under way.")
@click.option(
    "--arrivals", type=click.Choice(["constant", "poisson", "gamma"]), default="poisson", help="How they come then."
)
@click.option("--burstiness", type=float, help="Gamma's shape: 1 is Poisson, less comes in bursts.")
@click.option("--trace", type=click.Path(path_type=Path), help="Requests as recorded: JSON lines (docs/bench.md).")
@click.option("--soak", "soak_s", type=seconds, metavar="TIME", help="Keep one load up for so long: 1h.")
@click.option("--slo", "limits", type=slo, metavar="LIMITS", help="Count good requests: ttft=500ms,itl=50ms,e2e=10s.")
@click.option("--seed", type=int, default=1, help="The same seed makes the same prompts and times. [1]")
@click.option("--temperature", type=float, default=0.0, help="[0]")
@click.option("--silence", "silence_s", type=seconds, default="5m", metavar="TIME", help="Give a silent request up. [5m]")
@click.option("--tokenizer", type=click.Path(path_type=Path), help="A tokenizer.json, for a server that counts nothing.")
@click.option("--resume", metavar="RUN", help="Measure what a run lacks, asked as it was: its number, or `last`.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON, each request too.")
@click.option("--writes", "with_writes", is_flag=True, help="With --json: when each read of a socket brought how much.")
def measure(
    service: str | None, box: str | None, url: str | None, model: str | None, key_file: Path | None,
    engine_url: str | None, engine_key_file: Path | None, direct: bool, tokenizer: Path | None, resume: str | None,
    as_json: bool, with_writes: bool, **asked: Any,
) -> None:  # fmt: skip
    """Measures, and prints each cell as soon as it is known."""
    from stoker.cli.bench_text import Screen, without_writes
    from stoker.cli.show import say_json
    from stoker.config import find_paths
    from stoker.flows.addresses import Address
    from stoker.flows.bench import Live, bench
    from stoker.flows.bench_keeping import start_keeping

    target, subject = _choose(service, Address(url, model, key_file, engine_url, engine_key_file), box, direct=direct)
    wanted = _wanted(target, subject, tokenizer, asked, click.get_current_context().meta[WORDS])
    keeper = start_keeping(find_paths(), wanted, resume)
    wanted = wanted._replace(cells=keeper.missing)
    screen = Screen(wanted, is_silent=as_json)

    def note(result: CellResult) -> None:
        keeper.keep(result)
        screen.note(result)

    run, _, warnings = keeper.close(bench(wanted, Live(note, screen.tell)))
    if as_json:
        say_json(run if with_writes else without_writes(run))
    else:
        screen.close(run)
    for warning in warnings:
        click.secho(warning, fg="yellow", err=True)
    raise SystemExit(0 if run.is_whole and not any(one.failed for one in run.cells) else 1)


COMMAND = measure


def _choose(service: str | None, address: Address, box: str | None, *, direct: bool) -> tuple[Target, BenchSubject]:
    from stoker.errors import WrongUse
    from stoker.flows.addresses import Address
    from stoker.flows.bench_targets import choose_linked, choose_service, target_at
    from stoker.records import BenchSubject

    if box is not None:
        if direct or address != Address(None, None):
            raise WrongUse("--on asks through this box's door", next_step="leave out --direct, --url and what belongs to it")
        return choose_linked(service, box)
    if address == Address(None, None):
        return choose_service(service, direct=direct)
    if service is not None or direct:
        raise WrongUse(
            "name a service, or --url with all that belongs to it", next_step="`stoker bench --help` has examples"
        )
    target = target_at(address)
    return target, BenchSubject(url=target.url, model=target.model)


def _wanted(
    target: Target, subject: BenchSubject, tokenizer: Path | None, asked: dict[str, Any], words: tuple[str, ...]
) -> Wanted:
    from stoker.bench.cell import Settings
    from stoker.flows.bench import Wanted
    from stoker.flows.bench_asked import Grid, loads_of, read_tokenizer, traced

    settings = Settings(
        seed=asked["seed"], runs=asked["runs"], precision=asked["precision"], budget_s=asked["budget_s"],
        silence_s=asked["silence_s"], requests=asked["requests"], soak_s=asked["soak_s"], slo=asked["limits"],
        more={"temperature": asked["temperature"]},
    )  # fmt: skip
    grid = Grid(
        asked["pp"] or (512,), asked["tg"] or (128,), asked["depth"] or (0,),
        loads_of(asked["concurrency"], asked["rate"], asked["arrivals"], asked["burstiness"]),
        tuple(dict.fromkeys(asked["content"])) or ("prose",),
        asked["shared_prefix"], asked["turns"],
    )  # fmt: skip
    grid, settings = traced(asked["trace"], grid, settings) if asked["trace"] else (grid, settings)
    return Wanted(target, subject, grid.cells(), settings, words, read_tokenizer(tokenizer))
