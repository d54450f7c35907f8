"""Which runtime a plan is for."""

from __future__ import annotations

from stoker.records import Plan
from stoker.supervise.runtimes import Runtime
from stoker.supervise.runtimes.process import ProcessRuntime


def choose_runtime(plan: Plan, instance: str) -> Runtime:
    """Returns the runtime that a plan asks for."""
    return ProcessRuntime(instance, plan.service)
