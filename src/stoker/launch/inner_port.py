"""The port by which an engine's own processes meet, said where the engine would pick one too early. Pure."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from stoker.engines import find
from stoker.facts.engine.catalogs import version_key
from stoker.records import Plan, Setting

# Who says one of these has a meeting place already; a file may say anything.
SAID_OTHERWISE = ("--dist-init-addr", "--nccl-init-addr", "--config")
# Replicas beside each other take a port each, and would all be given the same one; with attention's they share one.
REPLICAS, SHARED = ("--dp-size", "--data-parallel-size"), "--enable-dp-attention"
BECAUSE = "the engine would pick one of the kernel's, which another program may have before it listens"


def with_inner_port(plan: Plan, pick: Callable[[], int]) -> Plan:
    """Returns the plan as it is started: with a port that `pick` found, where its engine takes one and none is said."""
    flag = _flag_of(plan)
    said: dict[str, object] = dict.fromkeys(plan.program)  # the user's own words before ours, with values that nobody knows
    said |= {one.name.replace("_", "-"): one.value for one in plan.settings}
    if not flag or {flag, *SAID_OTHERWISE} & said.keys():
        return plan
    if said.get(SHARED) is not True and any(str(said.get(name, 1)) != "1" for name in REPLICAS):
        return plan
    return msgspec.structs.replace(plan, settings=(*plan.settings, Setting(flag, pick(), BECAUSE)))


def _flag_of(plan: Plan) -> str:
    """Returns the flag where the engine's version is known to have it: one that is not known ends the start."""
    engine = find(plan.engine) if plan.is_engine else None
    key = version_key(plan.engine_version or "")
    return engine.inner_port_flag if engine and key and key[0] >= engine.inner_port_since else ""
