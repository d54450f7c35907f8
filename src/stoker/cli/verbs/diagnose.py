"""`stoker diagnose`: why an engine failed, from its log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from stoker.records import Diagnosis

HELP = """Tell why an engine failed: from a service's log, from any log file, from standard input, or from a container's log.

Findings come with the lines that prove them, the cause before what follows from it. Each is certain (its sign, its scope and
its mistake are all there), likely (one fact of them is unknown) or possible. What looks like a fault and is none is named;
where nothing fits, it says so. Without a target it is the service that spoke last.

--context adds what a log alone does not tell: the launch command, machine facts as `stoker facts --json` wrote them, or
both, as text or as a file. --apply shows what the first finding would change in the service's plan and table, asks, starts
it through its gate, and writes it into stoker.toml once it is READY; else what ran before runs again. --bundle packs the
log, the diagnosis and for a service its plan into an archive for a bug report, without keys, names and what was said to it.

\b
Example:
  stoker diagnose
  stoker diagnose vllm.log --context "vllm serve Qwen/Qwen3-8B --max-model-len 40000  # on a DGX Spark"
  docker logs vllm 2>&1 | stoker diagnose - --json
  stoker diagnose --container vllm
  stoker diagnose coder --apply
  stoker diagnose coder --on spark-b
  stoker diagnose coder --bundle report.tar.gz
"""


@click.command(help=HELP, short_help="Tell why an engine failed, and what mends it.")
@click.argument("target", required=False)
@click.option("--container", help="Read the log of this container, running or not.")
@click.option("--on", "box", help="A linked box, instead of this one; name the service.")
@click.option("--context", help="The launch command, machine facts, or a file with either.")
@click.option("--apply", "applies", is_flag=True, help="Change the service as the first finding says, after asking.")
@click.option("--yes", "-y", "is_agreed", is_flag=True, help="With --apply: do not ask.")
@click.option("--bundle", type=click.Path(dir_okay=False), help="Write a redacted archive for a bug report.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def diagnose(
    target: str | None, container: str | None, box: str | None, context: str | None, applies: bool, is_agreed: bool,
    bundle: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Reads a log and prints what it means."""
    if box is not None and (target is None or container or context or bundle or applies):
        raise click.UsageError("--on takes a service's name, without --container, --context, --bundle and --apply")
    if applies:
        if container is not None or context is not None or bundle is not None or as_json:
            raise click.UsageError("--apply is for a service alone, without --container, --context, --bundle and --json")
        _apply(target, is_agreed)
        return
    from stoker.cli.diagnose_text import diagnosis_text
    from stoker.cli.show import say_json
    from stoker.config import find_paths
    from stoker.flows.boxes.linked import find_linked
    from stoker.flows.diagnose import diagnose_container, diagnose_log, diagnose_service, is_service
    from stoker.flows.logs import saved_models

    if container is not None and target is not None:
        raise click.UsageError("name a log or a --container, not both")
    paths = find_paths()
    if box is not None:
        told = find_linked(paths, box, act=True).diagnosis(target or "")
    elif container is not None:
        told = diagnose_container(container, context)
    elif target is None or is_service(paths, target):
        told = diagnose_service(paths, target, context)
    else:
        told = diagnose_log(target, context, saved_models(paths))
    if bundle is not None:
        _pack(target, container, told, bundle)
    elif as_json:
        say_json(told)
    else:
        click.echo(diagnosis_text(told))


COMMAND = diagnose


def _apply(service: str | None, is_agreed: bool) -> None:
    from stoker.cli.fix_text import fix_text
    from stoker.cli.switch_text import show_switch
    from stoker.config import find_paths, read_config
    from stoker.flows.fixing import await_written, begin_fix, propose_fix
    from stoker.flows.up import ensure_daemon

    paths = find_paths()
    fix = propose_fix(paths, read_config(paths.config), service)
    click.echo(fix_text(fix))
    if not is_agreed:
        click.confirm("\nStart it so?", abort=True)
    daemon = ensure_daemon(paths)
    view = begin_fix(daemon, fix)
    show_switch(daemon, view, as_json=False)
    click.echo(await_written(daemon, view))


def _pack(target: str | None, container: str | None, told: Diagnosis, bundle: str) -> None:
    from pathlib import Path

    from stoker.cli.diagnose_text import diagnosis_text
    from stoker.config import find_paths, read_config
    from stoker.flows.bundle import write_bundle
    from stoker.flows.diagnose import is_service
    from stoker.flows.logs import find_log

    paths = find_paths()
    of_service = container is None and (target is None or is_service(paths, target))
    log = find_log(paths, target) if of_service else Path(target or "-")
    if not log.is_file():
        raise click.UsageError("--bundle is for a service or a log file")
    names = write_bundle(paths, read_config(paths.config), log, told, diagnosis_text, Path(bundle))
    click.echo(f"{bundle} holds {', '.join(names)}; look through it before you send it")
