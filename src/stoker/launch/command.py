"""A program that is no engine of ours, as a launch; its words say `{port}` where it is to listen. Pure."""

from __future__ import annotations

import msgspec

from stoker.engines import environment_of, find
from stoker.launch.ray import as_ray
from stoker.records import AdoptedProcess, LaunchSpec, Plan

PORT = "{port}"


def render_engine(plan: Plan, port: int) -> LaunchSpec:
    """Returns what a plan starts, whether that is an engine or a command."""
    if plan.adopted is not None:
        return _render_adopted(plan, plan.adopted, port)
    if not plan.is_engine:
        return _render_command(plan, port)
    spec = find(plan.engine).render(plan, port)
    if plan.seat is None:
        return spec
    return as_ray(spec, plan.ray) if plan.ray is not None else _as_worker(plan, spec)


def _as_worker(plan: Plan, spec: LaunchSpec) -> LaunchSpec:
    """A worker has no door, or one that says yes whatever happens: its log tells that it has found the others."""
    signs = find(plan.engine).log_form.signs
    joined = next((one.pattern for one in signs if (one.stage, one.mark) == ("connect", "end")), None)
    return msgspec.structs.replace(spec, health_path="", ready_line=joined)


def _render_adopted(plan: Plan, adopted: AdoptedProcess, port: int) -> LaunchSpec:
    """The words and the folder that it was started with, as they were; only its health is the engine's usual."""
    usual = find(plan.engine).render(msgspec.structs.replace(plan, program=()), port)
    return msgspec.structs.replace(
        usual, argv=plan.program, environment=environment_of(plan.settings), key_variable=None, folder=adopted.folder
    )


def _render_command(plan: Plan, port: int) -> LaunchSpec:
    said = {one.name: str(one.value) for one in plan.settings}
    return LaunchSpec(
        argv=tuple(word.replace(PORT, str(port)) for word in plan.program),
        environment=environment_of(plan.settings),
        health_path=said.get("health", ""),
        key_variable=None,
        ready_line=said.get("ready_line"),
    )
