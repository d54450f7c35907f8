"""Which runtime a service's engine is for."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from stoker.records import Handle, Plan
from stoker.supervise.runtimes import Runtime
from stoker.supervise.runtimes.process import ProcessRuntime


def choose_runtime(plan: Plan, handle: Handle | None, instance: str, log: Path, has_gpu: Callable[[], bool]) -> Runtime:
    """Returns the runtime of what runs, or ran last, by its handle; else the one that the plan asks for."""
    if plan.image is None and (handle is None or handle.container is None):
        return ProcessRuntime(instance, plan.service)
    from stoker.supervise.runtimes.container import ContainerRuntime  # only who has containers pays for it

    return ContainerRuntime(instance, plan.service, log, has_gpu(), os.environ)
