"""Which runtime a service's engine is for."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from stoker.records import Handle, Plan
from stoker.supervise.runtimes import Runtime
from stoker.supervise.runtimes.adopted import AdoptedRuntime, is_there
from stoker.supervise.runtimes.process import ProcessRuntime
from stoker.supervise.runtimes.ranked import Crew, RankedRuntime
from stoker.supervise.runtimes.ray import RayHeadRuntime, RayRuntime
from stoker.supervise.runtimes.unit import UnitRuntime, runs_unasked


def choose_runtime(
    plan: Plan, handle: Handle | None, instance: str, log: Path, has_gpu: Callable[[], bool], crew: Crew | None = None
) -> Runtime:
    """Returns the runtime of what runs, or ran last, by its handle; else the one that the plan asks for."""
    own = _choose_own(plan, handle, instance, log, has_gpu)
    return RankedRuntime(own, plan.parts, crew) if plan.parts and crew is not None else own


def _choose_own(plan: Plan, handle: Handle | None, instance: str, log: Path, has_gpu: Callable[[], bool]) -> Runtime:
    if plan.adopted is not None and plan.adopted.container is not None:
        from stoker.supervise.runtimes.adopted_container import AdoptedContainerRuntime

        return AdoptedContainerRuntime(plan.adopted.container, log)
    if plan.image is not None or (handle is not None and handle.container is not None):
        from stoker.supervise.runtimes.container import ContainerRuntime  # only who has containers pays for it

        return ContainerRuntime(instance, plan.service, log, has_gpu(), os.environ)
    if plan.unit is not None:
        return UnitRuntime(plan, log)
    if plan.adopted is not None:
        return AdoptedRuntime(plan, plan.adopted, instance)
    if plan.ray is not None:
        if plan.seat is None:
            return RayHeadRuntime(instance, plan.service, plan.ray, handle)
        return RayRuntime(instance, plan.service, handle)
    return ProcessRuntime(instance, plan.service)


def holds_already(plan: Plan) -> bool:
    """Tells whether what a plan is to run runs before it was started by Stoker, and so holds its memory and its port."""
    if plan.unit is not None:
        return runs_unasked(plan.unit)
    return plan.adopted is not None and is_there(plan.adopted)
