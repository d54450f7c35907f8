"""The `[workflow.NAME]` tables of `stoker.toml`, and the services that they and `[idle]` name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from stoker.errors import WrongUse, near_miss
from stoker.records import STOP, THEN, IdleSettings, Workflow, WorkflowStep
from stoker.tables import SERVICE_NAME, parse_table
from stoker.written_paths import whole_path


def parse_workflow(table: Mapping[str, Any], name: str, source: str) -> Workflow:
    """Turns a `[workflow.NAME]` table and its `[[workflow.NAME.step]]` into a record."""
    path = f"workflow.{name}"
    whole = parse_table({**table, "step": []}, Workflow, path, source, name=name)
    rows = table.get("step", [])
    if not isinstance(rows, list) or not rows:
        raise WrongUse(f"{source}: `{path}` has no steps", next_step=f"write [[{path}.step]] and a step's keys below it")
    steps = [parse_table(row, WorkflowStep, f"{path}.step[{place}]", source) for place, row in enumerate(rows)]
    for place, step in enumerate(steps):
        _check_step(step, [one.name for one in steps[:place]], f"{path}.step[{place}]", source)
    return msgspec.structs.replace(whole, step=tuple(steps))


def _check_step(step: WorkflowStep, before: list[str], path: str, source: str) -> None:
    if SERVICE_NAME.fullmatch(step.name) is None or step.name in (*before, THEN):
        raise WrongUse(
            f"{source}: `{step.name}` cannot be a step's name - at `{path}.name`",
            why="`stoker run --from` and what is kept of a run know a step by its name",
            next_step=f"use lower-case letters, digits, '.', '_' and '-', another for each step, and not `{THEN}`",
        )
    if not step.command and step.service is None:
        raise WrongUse(
            f"{source}: the step does nothing - at `{path}`", next_step="give it a `service`, a `command` or both"
        )


def check_services(workflows: Iterable[Workflow], idle: IdleSettings, known: set[str], source: str) -> None:
    """Raises WrongUse for a service that a workflow or `[idle]` names and that is not known."""
    named = [(idle.default_service, "idle.default_service")]
    for one in workflows:
        named += [(step.service, f"workflow.{one.name}.step[{place}].service") for place, step in enumerate(one.step)]
        named.append((None if one.then == STOP else one.then, f"workflow.{one.name}.then"))
    for name, path in named:
        if name is not None and name not in known:
            hint = near_miss(name, known, f"services here: {', '.join(sorted(known))}")
            raise WrongUse(f"{source}: there is no service called `{name}` - at `{path}`", next_step=hint)


def with_whole_folders(workflow: Workflow, folder: Path) -> Workflow:
    """Returns the workflow with whole paths: a step's folder, and its program where that is written with a slash."""
    steps = []
    for step in workflow.step:
        first = step.command[:1]
        program = tuple(whole_path(word, folder) if "/" in word else word for word in first)
        cwd = whole_path(step.cwd, folder)
        steps.append(msgspec.structs.replace(step, cwd=cwd, command=(*program, *step.command[1:])))
    return msgspec.structs.replace(workflow, step=tuple(steps))
