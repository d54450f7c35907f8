"""`stoker verify`: whether an endpoint does what its clients will ask of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from stoker.cli.kinds import seconds

if TYPE_CHECKING:
    from stoker.config import Paths
    from stoker.flows.addresses import Address
    from stoker.records import ProbeResult, ServiceView, Target, Verification

HELP = """Prove that an endpoint does what its clients will ask of it.

SERVICE is one of yours, asked through the gateway; it may be left out where only one is up. --on proves a linked box's,
through this box's door. --url proves any OpenAI-compatible address, of anybody's server or router; --engine names the
engine behind it, so that its own counters can be compared with what was asked. Each request and reply is kept in the
reports, without keys, with a line for curl. A start's gate asks less, so a service that is READY may fail here
(docs/verify.md). The default set takes at most a minute; --deep asks everything. Exit code 1: a probe failed; 4: the time
was over before all was asked.

What a service of yours was found to do is kept with the plan that it ran by, as is what its gate found before it became
READY (or did not); --last shows the last of it, without asking anything and without a daemon.

\b
Example:
  stoker verify
  stoker verify coder --deep --markdown report.md
  stoker verify --last coder
  stoker verify coder --on spark-b
  stoker verify --url http://spark:8000/v1 --model gemma --key-file key.txt --probe tools --probe streaming
  stoker verify --url http://router:4000 --model gemma --engine http://spark:8000 --require tools
"""


@click.command(help=HELP, short_help="Prove that an endpoint does what clients will ask.")
@click.argument("service", required=False)
@click.option("--on", "box", help="A linked box, asked through this one's door.")
@click.option("--url", help="Any address, with or without /v1, instead of a service.")
@click.option("--model", help="The model to ask there.")
@click.option("--key-file", type=click.Path(path_type=Path), help="The file with the key that it wants.")
@click.option("--engine", "engine_url", help="The engine that should serve, where a router stands in front of it.")
@click.option("--engine-key-file", type=click.Path(path_type=Path), help="The file with the engine's own key.")
@click.option("--probe", "named", multiple=True, metavar="NAME", help="Only this probe; may be said more than once.")
@click.option("--require", "required", multiple=True, metavar="NAME", help="A probe that has to be offered, not only well.")
@click.option("--last", is_flag=True, help="Show what was found the last time, by its gate or by you.")
@click.option("--deep", is_flag=True, help="Ask everything, for up to 15 minutes.")
@click.option("--budget", "budget_s", type=seconds, help="Stop asking after so long: 90s, 5m. 1m, or 15m with --deep.")
@click.option("--verbose", "-v", "everything", is_flag=True, help="Show the checks that passed too.")
@click.option("--json", "as_json", is_flag=True, help="Print everything, with the exchanges, as JSON.")
@click.option("--junit", type=click.Path(path_type=Path), help="Write a report for CI to this file.")
@click.option("--markdown", type=click.Path(path_type=Path), help="Write a report for people to this file.")
def verify(
    service: str | None, box: str | None, url: str | None, model: str | None, key_file: Path | None, engine_url: str | None,
    engine_key_file: Path | None, named: tuple[str, ...], required: tuple[str, ...], deep: bool, budget_s: float | None,
    last: bool, everything: bool, as_json: bool, junit: Path | None, markdown: Path | None,
) -> None:  # fmt: skip
    """Asks, or looks at what was found the last time; prints it, and writes the reports."""
    from stoker.errors import WrongUse
    from stoker.flows.addresses import Address

    show = Show(everything, as_json)
    address = None if url is None and model is None else Address(url, model, key_file, engine_url, engine_key_file)
    if box is not None and address is not None:
        raise WrongUse("--on names a box, --url an address", next_step="leave one of them out")
    if (address is None and (key_file or engine_url or engine_key_file)) or (address is not None and service is not None):
        raise WrongUse(
            "name a service, or --url with all that belongs to it", next_step="`stoker verify --help` has examples"
        )
    if last and (address or named or required or deep or budget_s):
        raise WrongUse("--last asks nothing", next_step="leave out what says whom and what to ask; it shows what is kept")
    whom = Whom(service, box, address)
    view = _show_last(whom, show) if last else _ask(whom, Wanted(named, required, deep, budget_s), show)
    _write(view, junit, markdown)
    raise SystemExit(1 if view.verdict == "fail" else 0 if view.in_time else 4)


class Whom(NamedTuple):
    """Who is asked: a service of this box or of a linked one, or an address."""

    service: str | None
    box: str | None
    address: Address | None


class Wanted(NamedTuple):
    """What is to be asked."""

    named: tuple[str, ...]
    required: tuple[str, ...]
    deep: bool
    budget_s: float | None


class Show(NamedTuple):
    """How it is shown."""

    everything: bool
    as_json: bool

    def result(self, result: ProbeResult) -> None:
        """Prints a probe's result."""
        from stoker.cli.verify_text import probe_text

        self.text(probe_text(result, everything=self.everything))

    def text(self, text: str) -> None:
        """Prints what only people read."""
        if not self.as_json:
            click.echo(text)


def _ask(whom: Whom, wanted: Wanted, show: Show) -> Verification:
    from stoker.cli.show import say_json
    from stoker.cli.verify_text import closing_text, gate_text, heading_text
    from stoker.config import find_paths
    from stoker.flows import verify as flow

    ours, target = _find(find_paths(), whom)
    if ours is not None and whom.box is None:
        flow.begin(find_paths(), ours)
    probes = flow.choose_probes(wanted.named, wanted.required, wanted.deep)
    show.text(heading_text(target))
    budget_s = wanted.budget_s or (flow.DEEP_BUDGET_S if wanted.deep else flow.QUICK_BUDGET_S)
    view = flow.verify(target, probes, wanted.required, budget_s, show.result)
    show.text(closing_text(view))
    if ours is not None and (why := gate_text(view, ours.name)):
        show.text(why)
    if show.as_json:
        say_json(view)
    if ours is not None:
        _keep(ours, wanted, view)
    return view


def _find(paths: Paths, whom: Whom) -> tuple[ServiceView | None, Target]:
    from stoker.flows.addresses import target_of
    from stoker.flows.boxes.proved import choose_there, target_there
    from stoker.flows.targets import choose_service, target_of_service

    if whom.address is not None:
        return None, target_of(whom.address)
    if whom.box is not None:
        there = choose_there(paths, whom.box, whom.service)
        return there, target_there(paths, whom.box, there)
    ours = choose_service(paths, whom.service)
    return ours, target_of_service(paths, ours)


def _keep(service: ServiceView, wanted: Wanted, view: Verification) -> None:
    """Has it kept with the plan; where that fails, what was found stands all the same."""
    from stoker.config import find_paths
    from stoker.errors import StokerError
    from stoker.flows.verify import keep

    try:
        keep(find_paths(), service, wanted.required, view)
    except StokerError as problem:
        click.echo(f"what was found is not kept: {problem}", err=True)


def _show_last(whom: Whom, show: Show) -> Verification:
    from stoker.cli.show import say_json
    from stoker.cli.verify_text import closing_text, kept_text
    from stoker.config import find_paths
    from stoker.flows.verify import read_last

    kept = read_last(find_paths(), whom.service, whom.box)
    show.text(kept_text(kept))
    for result in kept.verification.probes:
        show.result(result)
    show.text(closing_text(kept.verification))
    if show.as_json:
        say_json(kept)
    return kept.verification


def _write(view: Verification, junit: Path | None, markdown: Path | None) -> None:
    from stoker.cli.verify_reports import junit_text, markdown_text
    from stoker.errors import WrongUse

    for file, render in ((junit, junit_text), (markdown, markdown_text)):
        if file is not None:
            try:
                file.write_text(render(view))
            except OSError as problem:
                raise WrongUse(f"{file} cannot be written", why=str(problem)) from problem


COMMAND = verify
