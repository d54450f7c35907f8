"""A report's launch as text: words, a compose file, a quadlet, a unit, or the image that a rule asks for."""

from __future__ import annotations

import os
import pwd
import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec

from stoker.config import Paths, find_paths
from stoker.errors import Refused, WrongUse
from stoker.flows.ownership import make_state_folder
from stoker.launch.beside import plan_beside
from stoker.launch.compose import render_compose
from stoker.launch.container import render_docker_run, render_podman_run
from stoker.launch.dockerfile import render_overlay
from stoker.launch.from_plan import check_is_engine, container_of, container_unit_of, launch_of, overlay_of, unit_of
from stoker.launch.names import UNWRITABLE, check_no_secret
from stoker.launch.quadlet import render_quadlet
from stoker.launch.reasons import option_reasons
from stoker.launch.unit import render_unit
from stoker.plan.written.quoting import say_command
from stoker.records import Plan, Report
from stoker.rules.load import find_rule
from stoker.supervise.plan_files import write_files

FIRST_PORT = 30000
FORMS = ("argv", "docker", "podman", "compose", "quadlet", "unit", "dockerfile")
DOCKER = "/usr/bin/docker"


def render_launch_text(report: Report, form: str, *, is_here: bool = True) -> str:
    """Returns the launch in one of `FORMS`; raises Refused where the plan cannot be written so.

    What it reads from a file is written too, where it `is_here` that it will run.
    """
    if form == "dockerfile":
        return _dockerfile(report)
    plan = _with_files(report.plan, find_paths()) if is_here else report.plan
    port = plan.port or FIRST_PORT
    if form == "argv":
        return _with_environment(plan, port)
    if form == "unit":
        return _unit(plan, port)
    launch = container_of(plan, port)
    renderers = {"docker": render_docker_run, "podman": render_podman_run}
    if form in renderers:
        return say_command(renderers[form](launch))
    return render_compose([launch]) if form == "compose" else render_quadlet(launch)


def _with_files(plan: Plan, paths: Paths) -> Plan:
    """Returns the plan with paths of files that are there now, so that what is rendered can be run."""
    moved, files = plan_beside(plan, str(paths.plan_files))
    if files:
        make_state_folder(paths)
        write_files(files)
    return moved


def _unit(plan: Plan, port: int) -> str:
    if plan.image is not None:
        launch = container_of(plan, port)
        unit = container_unit_of(plan, launch, shutil.which("docker") or DOCKER)
        return render_unit(unit, option_reasons(launch))
    unit = unit_of(plan, port, find_owner(os.geteuid(), os.environ))
    return render_unit(msgspec.structs.replace(unit, argv=(_whole_path(unit.argv[0], plan), *unit.argv[1:])))


def find_owner(uid: int, environment: Mapping[str, str]) -> str:
    """Returns the user whose engine it will be: the caller, or who called `sudo`; raises Refused where that is root."""
    name = environment.get("SUDO_USER") if uid == 0 else None
    try:
        owner = pwd.getpwnam(name) if name else pwd.getpwuid(uid)
    except KeyError as problem:
        raise Refused(f"there is no user {name or uid} on this machine, for whom a unit could be") from problem
    if owner.pw_uid == 0:
        raise Refused(
            "an engine should not run as root",
            why="it runs what a model's files bring along; a unit is for the user who asks for it",
            next_step="call `stoker plan ... --render unit` as the user who owns the models",
        )
    return owner.pw_name


def _whole_path(program: str, plan: Plan) -> str:
    """systemd wants the program's whole path; a unit is for the machine on which it is rendered."""
    place = shutil.which(program)
    if place is None:
        raise Refused(
            f"a unit needs the whole path of `{program}`, which is not on PATH here",
            next_step=f"set `program` of [service.{plan.service}], such as ['/opt/venv/bin/{program}', ...]",
        )
    return str(Path(place).absolute())


def _with_environment(plan: Plan, port: int) -> str:
    if plan.image is not None:
        raise Refused(
            f"{plan.service} runs in the image {plan.image}, of which the engine's words alone say nothing",
            next_step="`--render docker` (or podman, compose, quadlet, unit) prints the container",
        )
    spec = launch_of(plan, port)
    check_no_secret(plan.service, spec.environment, spec.argv)
    variables = tuple(f"{name}={value}" for name, value in spec.environment)
    words = (*(("env", *variables) if variables else ()), *spec.argv)
    if any(UNWRITABLE.search(word) for word in words):
        raise Refused(f"a word of {plan.service} holds a NUL, or is not UTF-8", why="no command line can hold it")
    return say_command(words)


def _dockerfile(report: Report) -> str:
    check_is_engine(report.plan)
    found = [find_rule(one.rule) for one in report.findings if not one.rule.startswith(("budget-", "model-not"))]
    overlays = [overlay for rule in found if report.plan.image and (overlay := overlay_of(report.plan.image, rule))]
    if not overlays:
        raise WrongUse(
            f"no rule asks for another image than {report.plan.image or 'the installed engine'}",
            next_step="`--render docker` prints the command for the image as it is",
        )
    return render_overlay(overlays[0])
