"""Runs a workflow: brings up the service that each step needs, runs its command, and keeps how far it came."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from stoker.box import clock_s
from stoker.config import Config, Paths
from stoker.errors import BY_EXIT_CODE, Refused, StokerError
from stoker.flows.bringing import Say, bring_up, stop_those_up
from stoker.flows.lease import hold_run
from stoker.flows.ownership import instance_of
from stoker.flows.planning import find_wish, make_plan
from stoker.flows.run_state import read_state, write_state
from stoker.flows.up import ensure_daemon
from stoker.launch.step import Access, step_environment
from stoker.plan.workflow import plan_run
from stoker.records import THEN, RunOutcome, RunPlan, RunState, RunView, StepOutcome, StepRun, WorkflowStep, say_s
from stoker.supervise.process import Group
from stoker.supervise.steps import end_step, ended_as_by_ctrl_c, run_step

INTERRUPTED = "it was interrupted"


def find_run(paths: Paths, config: Config, name: str, from_step: str | None, again: bool) -> RunPlan:
    """Returns what a run will do; raises WrongUse or Refused where it could not work."""
    saved, problem = read_state(paths.run_state(name))
    plan = plan_run(config.workflows[name], saved, clock_s(), from_step, again)
    for step in plan.steps[plan.begins_at :]:
        _check_step(step, config)
    return msgspec.structs.replace(plan, why=problem) if problem and not plan.why else plan


def _check_step(step: WorkflowStep, config: Config) -> None:
    """Refuses before the first step what would fail at a later one, maybe an hour from now."""
    if step.service is not None:
        make_plan(find_wish(step.service, config))
    if not Path(step.cwd).is_dir():
        raise Refused(f"step `{step.name}`: there is no folder {step.cwd}", next_step="make it, or set the step's `cwd`")
    if step.command and shutil.which(step.command[0], path=step.environment.get("PATH")) is None:
        raise Refused(
            f"step `{step.name}`: there is no program `{step.command[0]}`",
            next_step="set the first word of `command` to a program on PATH, or to its whole path",
        )


class Run:
    """One run of a workflow; `view` is how it went so far. `to_stderr` is where commands print, to keep stdout for JSON."""

    def __init__(self, paths: Paths, config: Config, plan: RunPlan, say: Say, to_stderr: bool = False) -> None:
        self._paths, self._config, self._plan, self._say, self._to_stderr = paths, config, plan, say, to_stderr
        self._state = plan.state
        self._file = paths.run_state(plan.workflow)
        self._took_s: dict[str, float] = {}
        self._begun = time.monotonic()

    def go(self) -> RunView:
        """Runs the steps that are left, until one fails or Ctrl-C ends it."""
        with hold_run(self._paths, self._plan.workflow), ended_as_by_ctrl_c():
            self._end_former()
            try:
                for step in self._plan.steps[self._plan.begins_at :]:
                    self._do(step)
            except KeyboardInterrupt:
                return self._stopped(StokerError(INTERRUPTED))
            except StokerError as problem:
                return self._stopped(problem)
            self._keep(msgspec.structs.replace(self._state, is_over=True, at=None))
        return self._view("done", "")

    def _end_former(self) -> None:
        """Ends the command of a run that was killed, which would go on beside its own repetition."""
        if self._plan.killed_at is not None:
            end_step(Group(self._marker(self._plan.killed_at)))

    def _marker(self, step: str) -> str:
        # Not one of an engine, whose first word is the instance: the daemon ends those that belong to no service.
        return f"run/{instance_of(self._paths)}/{self._plan.workflow}/{step}"

    def _do(self, step: WorkflowStep) -> None:
        self._keep(msgspec.structs.replace(self._state, at=step.name, why=""))
        place = [one.name for one in self._plan.steps].index(step.name) + 1
        last = self._plan.state.took_s.get(step.name)
        self._say(f"step {place} of {len(self._plan.steps)}: {step.name}{_last_time(last)}")
        begun = time.monotonic()
        try:
            self._carry_out(step)
        finally:
            took_s = self._took_s[step.name] = time.monotonic() - begun
        self._say(f"{step.name} took {say_s(took_s)}")
        done = (*self._state.done, step.name)
        self._keep(msgspec.structs.replace(self._state, done=done, took_s={**self._state.took_s, step.name: took_s}))

    def _carry_out(self, step: WorkflowStep) -> None:
        daemon = ensure_daemon(self._paths)
        if step.name == THEN and step.service is None:
            names = {one.service for one in self._plan.steps if one.service}
            stop_those_up(daemon, names, self._say)
            return
        service = bring_up(daemon, find_wish(step.service, self._config), self._say) if step.service else None
        if step.command:
            access = Access(f"{daemon.url}/v1", daemon.key, str(self._paths.key_file))
            marker = self._marker(step.name)
            environment = step_environment(step, os.environ, access, service, marker)
            run_step(step, environment, marker, to_stderr=self._to_stderr)

    def _keep(self, state: RunState) -> None:
        self._state = state
        write_state(self._file, state)

    def _stopped(self, problem: StokerError) -> RunView:
        self._keep(msgspec.structs.replace(self._state, why=problem.what))
        outcome: RunOutcome = "interrupted" if problem.what == INTERRUPTED else "failed"
        why = problem.what + (f": {problem.why}" if problem.why else "")
        return msgspec.structs.replace(self._view(outcome, why), exit_code=problem.exit_code)

    def _view(self, outcome: RunOutcome, why: str) -> RunView:
        steps = view_steps(self._plan, self._state, self._took_s, outcome)
        return RunView(self._plan.workflow, outcome, tuple(steps), why, 0, time.monotonic() - self._begun)


def _last_time(took_s: float | None) -> str:
    return "" if took_s is None else f" (it took {say_s(took_s)} last time)"


def view_steps(plan: RunPlan, state: RunState, took_s: dict[str, float], ended: RunOutcome) -> Iterator[StepRun]:
    """Yields each step with its outcome; `ended` is that of the step at which the run stopped."""
    before = {step.name for step in plan.steps[: plan.begins_at]}
    for step in plan.steps:
        outcome: StepOutcome = "skipped" if step.name in before else "done" if step.name in state.done else "left"
        if step.name == state.at and outcome == "left" and ended != "planned":
            outcome = ended
        last_s = plan.state.took_s.get(step.name)
        yield StepRun(step.name, step.service, outcome, took_s.get(step.name), last_s, step.command)


def view_plan(plan: RunPlan) -> RunView:
    """Returns what a run would do, without doing it."""
    return RunView(plan.workflow, "planned", tuple(view_steps(plan, plan.state, {}, "planned")), plan.why)


def check_run(view: RunView) -> None:
    """Raises the error that fits where a run did not come to its end."""
    if view.outcome in ("done", "planned"):
        return
    at = next((step.name for step in view.steps if step.outcome in ("failed", "interrupted")), view.workflow)
    kind = BY_EXIT_CODE.get(view.exit_code, StokerError)
    raise kind(
        f"step `{at}` of {view.workflow} {'was interrupted' if view.outcome == 'interrupted' else 'failed'}",
        why=view.why, next_step=f"`stoker run {view.workflow}` goes on at `{at}`; with --again it begins anew",
    )  # fmt: skip
