"""`stoker run`: the steps of a workflow, each with the service it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from stoker.config import Config
    from stoker.flows.workflow import Run
    from stoker.records import RunPlan, Workflow

HELP = """Run a workflow of stoker.toml: each step's service is brought up in the place of others, then its command is run.

Commands run as yours, with OPENAI_BASE_URL and OPENAI_API_KEY for the gateway. A run that failed or was interrupted goes on
at that step when it is run again; Ctrl-C ends the command with all that it started.

\b
Example:
  stoker run article
  stoker run podcast --from speak
  stoker run article --dry-run
"""


@click.command(help=HELP, short_help="Run a workflow's steps, each with the service it needs.")
@click.argument("workflow")
@click.option("--from", "from_step", metavar="STEP", help="Begin at this step.")
@click.option("--again", is_flag=True, help="Begin anew, also after a failure.")
@click.option("--dry-run", is_flag=True, help="Check and show what would be done.")
@click.option("--json", "as_json", is_flag=True, help="Print how it ended as JSON; commands print to standard error.")
def run(workflow: str, from_step: str | None, again: bool, dry_run: bool, as_json: bool) -> None:
    """Runs the steps that are left."""
    from stoker.config import find_paths, read_config
    from stoker.flows.workflow import Run, find_run

    if again and from_step:
        raise click.UsageError("--again begins at the first step and --from at another: give one of them")
    paths = find_paths()
    config = read_config(paths.config)
    plan = find_run(paths, config, _find(workflow, config).name, from_step, again)
    if dry_run:
        _show_plan(plan, as_json)
        return
    if plan.why and not as_json:
        click.echo(f"{workflow} {plan.why}")
    _go(Run(paths, config, plan, _silent if as_json else click.echo, to_stderr=as_json), as_json)


COMMAND = run


def _silent(line: str) -> None:
    """Says nothing, so that standard output holds one JSON document."""


def _find(name: str, config: Config) -> Workflow:
    from stoker.errors import WrongUse

    if name in config.workflows:
        return config.workflows[name]
    known = ", ".join(sorted(config.workflows))
    where = config.source or "stoker.toml"
    raise WrongUse(
        f"there is no workflow called `{name}` in {where}",
        next_step=f"workflows here: {known}" if known else "write [[workflow.NAME.step]]; see docs/configuration.md",
    )


def _show_plan(plan: RunPlan, as_json: bool) -> None:
    from stoker.cli.run_text import plan_text
    from stoker.cli.show import say_json
    from stoker.flows.workflow import view_plan

    view = view_plan(plan)
    if as_json:
        say_json(view)
    else:
        click.echo(plan_text(view))


def _go(run: Run, as_json: bool) -> None:
    from stoker.cli.run_text import end_text
    from stoker.cli.show import say_json
    from stoker.errors import StokerError
    from stoker.flows.workflow import check_run

    view = run.go()
    if not as_json:
        check_run(view)
        click.echo(end_text(view))
        return
    say_json(view)
    try:
        check_run(view)
    except StokerError as problem:  # not raised further: standard output has its one document
        click.echo(f"stoker: {problem}", err=True)
        raise SystemExit(problem.exit_code) from problem
