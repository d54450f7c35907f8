"""Tells what a start was made of, beside the one before, and what is known to make its slowest part shorter."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import msgspec

from stoker.box import LocalBox
from stoker.config import Paths
from stoker.engines import find
from stoker.errors import StokerError, WrongUse, service_hint
from stoker.facts.engine.catalogs import find_catalog
from stoker.facts.engine.flags import find_flag
from stoker.facts.machine.read import read_machine
from stoker.facts.machine.read_rate import measure_folder
from stoker.facts.model.read import read_model
from stoker.flows.logs import saved_models
from stoker.flows.reading import read_text
from stoker.plan.situation import Facts, machine_facts, model_facts, setting_facts
from stoker.records import Finding, Loading, Plan, Stage, StageRow, Start, Timeline, TimelineView
from stoker.rules.load import load_rules
from stoker.rules.match import match_stage
from stoker.store.services import read_saved
from stoker.store.timelines import read_services, read_starts
from stoker.supervise.starts.timeline import read_timeline, recognise

UNEXPLAINED = "not explained"
LOG_BYTES = 256 * 1024**2
LEAST_READING_S = 1.0  # what took less says nothing of a disk: a log tells hundredths, and the cache answers first
LEAST_WORTH_S = 1.0  # a part that took less is not worth a change
FLAG = re.compile(r"--[a-z][a-z0-9-]+")


def view_service(paths: Paths, service: str | None, measure: bool = False) -> TimelineView:
    """Returns a service's last start beside the one before; without a name, of the service that started last."""
    known = read_services(paths.database)
    if not known:
        raise WrongUse(
            "no start has been kept yet",
            why="no engine became ready here",
            next_step="`stoker up` starts one; --log reads a file",
        )
    if service is not None and service not in known:
        hint = service_hint(service, saved_models(paths), f"kept are: {', '.join(known)}", "stoker timeline")
        raise WrongUse(f"no start of a service called `{service}` is kept", next_step=hint)
    last, *earlier = read_starts(paths.database, service or known[0], most=2)
    plan = _plan_of(paths, last)
    disk_bytes_per_s = _disk_rate(plan) if measure else None
    # A plan over several boxes is shown, and not started.
    facts = {**_log_facts(last.timeline), "nodes": 1} | (launch_facts(paths, plan) if plan else {})
    before = earlier[0].timeline if earlier else None
    return make_view(last.timeline, before, facts, launch_known=plan is not None, disk_bytes_per_s=disk_bytes_per_s)


def view_log(file: Path, engine: str | None = None) -> TimelineView:
    """Returns the last start in a log file, of whatever machine; raises WrongUse where no start can be read from it."""
    text = read_text(file, "an engine's log", LOG_BYTES)
    name = find(engine).name if engine is not None else recognise(text)
    if name is None:
        raise WrongUse(
            f"{file} is not known to be an engine's log",
            why="no line of it is one that an engine says while it starts",
            next_step="if it is one, name its engine with --engine; a start that died at once says nothing of its stages",
        )
    timeline = read_timeline(find(name), [(None, line) for line in text.split("\n")])
    if not timeline.stages:
        raise StokerError(f"{file} tells of no start of {name}", why="none of its lines begins or ends a stage")
    return make_view(timeline, None, _log_facts(timeline), launch_known=False)


def make_view(
    last: Timeline, before: Timeline | None, facts: Facts, launch_known: bool, disk_bytes_per_s: float | None = None
) -> TimelineView:
    """Returns two starts side by side with what the rules say of the slowest part. Pure."""
    rows = _rows(last, before)
    timed = [(row.took_s, row.name) for row in rows if row.took_s]
    slowest = max(timed)[1] if timed else None
    return TimelineView(
        last, before, rows, slowest, _advice(last, slowest, facts, launch_known), _loading(last, disk_bytes_per_s)
    )


def _rows(last: Timeline, before: Timeline | None) -> tuple[StageRow, ...]:
    old = {stage.name: stage.took_s for stage in before.stages} if before else {}
    rows = [_row(stage.name, stage.took_s, old.get(stage.name), stage.line) for stage in last.stages]
    there = {row.name for row in rows}
    rows += [_row(name, None, took_s, "") for name, took_s in old.items() if name not in there]
    unexplained = before.unexplained_s if before else None
    return (*rows, _row(UNEXPLAINED, last.unexplained_s, unexplained, ""))


def _row(name: str, took_s: float | None, before_s: float | None, line: str) -> StageRow:
    difference_s = round(took_s - before_s, 3) if took_s is not None and before_s is not None else None
    return StageRow(name, took_s, before_s, difference_s, line)


def _advice(last: Timeline, slowest: str | None, facts: Facts, launch_known: bool) -> tuple[Finding, ...]:
    stage = next((stage for stage in last.stages if stage.name == slowest), None)
    if stage is None or (stage.took_s or 0.0) < LEAST_WORTH_S:
        return ()
    found = match_stage(load_rules(last.engine), stage.name, facts, launch_known)
    return tuple(_by_catalog(finding, last) for finding in found)


def _by_catalog(finding: Finding, last: Timeline) -> Finding:
    """Returns the finding with a word about flags in its remedy that this version of the engine does not have."""
    near = find_catalog(last.engine, last.version).catalog
    lacking = [name for name in dict.fromkeys(FLAG.findall(finding.fix)) if near and find_flag(near, name) is None]
    said = f" {last.engine} {last.version} has no {' and no '.join(lacking)}." if lacking else ""
    return msgspec.structs.replace(finding, fix=finding.fix + said)


def _loading(last: Timeline, disk_bytes_per_s: float | None) -> Loading | None:
    weights = next((stage for stage in last.stages if stage.name == "weights"), None)
    took_s = _reading_s(weights) if weights else None
    if weights is None or not weights.bytes or took_s is None or took_s < LEAST_READING_S:
        return None
    rate = weights.bytes / took_s
    share = round(rate / disk_bytes_per_s, 3) if disk_bytes_per_s else None
    return Loading(weights.bytes, took_s, rate, disk_bytes_per_s, share)


def _reading_s(weights: Stage) -> float | None:
    return weights.read_s if weights.read_s is not None else weights.took_s


def _log_facts(timeline: Timeline) -> Facts:
    facts: Facts = {"engine": timeline.engine}
    return facts | ({"version": find(timeline.engine).release_of(timeline.version)} if timeline.version else {})


def _plan_of(paths: Paths, start: Start) -> Plan | None:
    """Returns the plan of a start; None where the service has another by now."""
    plans = (saved.plan for saved in read_saved(paths.database))
    return next((plan for plan in plans if (plan.service, plan.plan_id) == (start.service, start.plan_id)), None)


def launch_facts(paths: Paths, plan: Plan) -> Facts:
    """Returns what the rules may know of a plan and of the machine that it is for: this one."""
    machine = read_machine(LocalBox(), str(paths.state))
    facts = machine_facts(machine) | setting_facts(plan.settings)
    with contextlib.suppress(StokerError):  # it may have been moved since
        facts |= model_facts(read_model(Path(plan.model_path)), None, machine)
    return facts


def _disk_rate(plan: Plan | None) -> float | None:
    """Returns how fast the model's disk reads its largest file; None where there is no plan, or no file worth reading."""
    if plan is None:
        return None
    place = Path(plan.model_path)
    with contextlib.suppress(StokerError, OSError):
        return measure_folder([place if place.is_dir() else place.parent], free_bytes=0).bytes_per_s
    return None
