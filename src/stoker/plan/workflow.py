"""Where a run of a workflow begins: anew, or where the one before failed or was interrupted. Pure."""

from __future__ import annotations

import hashlib

import msgspec

from stoker.errors import WrongUse
from stoker.records import STOP, THEN, RunPlan, RunState, Workflow, WorkflowStep


def plan_run(
    workflow: Workflow, saved: RunState | None, now: float, from_step: str | None = None, again: bool = False
) -> RunPlan:
    """Returns what a run will do; `saved` is how far the one before came. Raises WrongUse for a step that is not there."""
    steps = _whole_steps(workflow)
    names = [step.name for step in steps]
    digest = digest_of(workflow)
    begins_at, why = _find_begin(names, digest, saved, from_step, again)
    took_s = {name: took for name, took in saved.took_s.items() if name in names} if saved else {}
    state = RunState(digest, now, tuple(names[:begins_at]), took_s)
    killed = saved is not None and not saved.is_over and not saved.why
    return RunPlan(workflow.name, steps, begins_at, why, state, saved.at if saved and killed else None)


def digest_of(workflow: Workflow) -> str:
    """Returns a digest of everything that a workflow's table says."""
    return hashlib.sha256(msgspec.json.encode(workflow, order="deterministic")).hexdigest()


def _whole_steps(workflow: Workflow) -> tuple[WorkflowStep, ...]:
    """Returns the steps, each with the service that it needs, and what comes after the last as one more."""
    steps: list[WorkflowStep] = []
    for step in workflow.step:
        before = steps[-1].service if steps else None
        steps.append(msgspec.structs.replace(step, service=step.service or before))
    if workflow.then is not None:
        steps.append(WorkflowStep(THEN, None if workflow.then == STOP else workflow.then))
    return tuple(steps)


def _find_begin(
    names: list[str], digest: str, saved: RunState | None, from_step: str | None, again: bool
) -> tuple[int, str]:
    if from_step is not None:
        if from_step not in names:
            raise WrongUse(f"there is no step `{from_step}`", next_step=f"steps: {', '.join(names)}")
        return names.index(from_step), f"begins at `{from_step}`, as you asked"
    if saved is None or saved.is_over or saved.at is None:
        return 0, ""
    if again:
        return 0, f"begins anew, as you asked; the run before stopped at `{saved.at}`"
    if saved.digest != digest:
        return 0, f"begins anew: its table changed since the run that stopped at `{saved.at}`"
    return names.index(saved.at), f"goes on at `{saved.at}`: {saved.why or 'the run before was killed there'}"
