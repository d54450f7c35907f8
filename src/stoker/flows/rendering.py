"""A report's launch as text: words, a compose file, a quadlet, a unit, or the image that a rule asks for."""

from __future__ import annotations

import getpass
import shutil

import msgspec

from stoker.engines import find
from stoker.errors import Refused, WrongUse
from stoker.launch.compose import render_compose
from stoker.launch.container import render_docker_run, render_podman_run
from stoker.launch.dockerfile import render_overlay
from stoker.launch.from_plan import container_of, overlay_of, unit_of
from stoker.launch.quadlet import render_quadlet
from stoker.launch.unit import render_unit
from stoker.plan.written.mend import say_command
from stoker.records import Plan, Report
from stoker.rules.load import find_rule

FIRST_PORT = 30000
FORMS = ("argv", "docker", "podman", "compose", "quadlet", "unit", "dockerfile")


def render_launch_text(report: Report, form: str) -> str:
    """Returns the launch in one of `FORMS`; raises Refused where the plan cannot be written so."""
    plan = report.plan
    port = plan.port or FIRST_PORT
    if form == "argv":
        return _with_environment(plan, port)
    if form == "unit":
        return render_unit(unit_of(_with_whole_path(plan), port, getpass.getuser()))
    if form == "dockerfile":
        return _dockerfile(report)
    launch = container_of(plan, port)
    renderers = {"docker": render_docker_run, "podman": render_podman_run}
    if form in renderers:
        return say_command(renderers[form](launch))
    return render_compose([launch]) if form == "compose" else render_quadlet(launch)


def _with_whole_path(plan: Plan) -> Plan:
    """systemd wants the program's whole path; a unit is for the machine on which it is rendered."""
    first, *more = plan.program or find(plan.engine).program
    place = shutil.which(first)
    if place is None:
        raise Refused(
            f"a unit needs the whole path of `{first}`, which is not on PATH here",
            next_step=f"set `program` of [service.{plan.service}], such as ['/opt/venv/bin/{first}', ...]",
        )
    return msgspec.structs.replace(plan, program=(place, *more))


def _with_environment(plan: Plan, port: int) -> str:
    spec = find(plan.engine).render(plan, port)
    variables = tuple(f"{name}={value}" for name, value in spec.environment)
    return say_command((*(("env", *variables) if variables else ()), *spec.argv))


def _dockerfile(report: Report) -> str:
    found = [find_rule(one.rule) for one in report.findings if not one.rule.startswith(("budget-", "model-not"))]
    overlays = [overlay for rule in found if report.plan.image and (overlay := overlay_of(report.plan.image, rule))]
    if not overlays:
        raise WrongUse(
            f"no rule asks for another image than {report.plan.image or 'the installed engine'}",
            next_step="`--render docker` prints the command for the image as it is",
        )
    return render_overlay(overlays[0])
