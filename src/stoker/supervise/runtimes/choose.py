"""Which runtime a plan is for."""

from __future__ import annotations

from stoker.records import Plan
from stoker.supervise.runtimes import Runtime
from stoker.supervise.runtimes.adopted import AdoptedRuntime, is_there
from stoker.supervise.runtimes.process import ProcessRuntime
from stoker.supervise.runtimes.unit import UnitRuntime, runs_unasked


def choose_runtime(plan: Plan, instance: str) -> Runtime:
    """Returns the runtime that a plan asks for."""
    if plan.unit is not None:
        return UnitRuntime(plan)
    if plan.adopted is not None:
        return AdoptedRuntime(plan, plan.adopted, instance)
    return ProcessRuntime(instance, plan.service)


def holds_already(plan: Plan) -> bool:
    """Tells whether what a plan is to run runs before it was started by Stoker, and so holds its memory and its port."""
    if plan.unit is not None:
        return runs_unasked(plan.unit)
    return plan.adopted is not None and is_there(plan.adopted)
