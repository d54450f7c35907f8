"""A program that is no engine of ours, as a launch; its words say `{port}` where it is to listen. Pure."""

from __future__ import annotations

from stoker.engines import environment_of, find
from stoker.records import LaunchSpec, Plan

PORT = "{port}"


def render_engine(plan: Plan, port: int) -> LaunchSpec:
    """Returns what a plan starts, whether that is an engine or a command."""
    return find(plan.engine).render(plan, port) if plan.is_engine else _render_command(plan, port)


def _render_command(plan: Plan, port: int) -> LaunchSpec:
    said = {one.name: str(one.value) for one in plan.settings}
    return LaunchSpec(
        argv=tuple(word.replace(PORT, str(port)) for word in plan.program),
        environment=environment_of(plan.settings),
        health_path=said.get("health", ""),
        key_variable=None,
        ready_line=said.get("ready_line"),
    )
