"""The port by which an engine's own processes meet, said where the engine would pick one too early. Pure."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from stoker.engines import find
from stoker.records import Plan, Setting

# What says it in the user's words, or where the ranks of several boxes meet.
SAID_OTHERWISE = ("--dist-init-addr", "--nccl-init-addr")
BECAUSE = "the engine would pick one of the kernel's, which another program may have before it listens"


def with_inner_port(plan: Plan, pick: Callable[[], int]) -> Plan:
    """Returns the plan as it is started: with a port that `pick` found, where its engine takes one and none is said."""
    flag = find(plan.engine).inner_port_flag if plan.is_engine else ""
    said = {one.name.replace("_", "-") for one in plan.settings}
    if not flag or said & {flag, *SAID_OTHERWISE}:
        return plan
    return msgspec.structs.replace(plan, settings=(*plan.settings, Setting(flag, pick(), BECAUSE)))
