"""How a workflow looks on a terminal: what a run would do, and how it ended."""

from __future__ import annotations

import shlex

import click

from stoker.cli.show import printable, table
from stoker.plan.secrets import hide_words
from stoker.records import STOP, THEN, RunView, StepRun, say_s

COLOURS = {"done": "green", "failed": "red", "interrupted": "yellow"}


def plan_text(view: RunView) -> str:
    """Returns the steps of a run that was not made."""
    lines = [f"{view.workflow} {view.why}", ""] if view.why else []
    rows = [(step.name, _service(step), _last(step), _outcome(step), _command(step)) for step in view.steps]
    return "\n".join([*lines, table(("step", "service", "last time", "", "command"), rows)])


def end_text(view: RunView) -> str:
    """Returns how a run ended, with the time of each step beside that of the time before."""
    ran = [step for step in view.steps if step.outcome == "done"]
    rows = [(step.name, "-" if step.took_s is None else say_s(step.took_s), _last(step)) for step in ran]
    took = f" in {say_s(view.took_s)}" if view.took_s is not None else ""
    return "\n".join(["", table(("step", "took", "last time"), rows), "", f"{view.workflow} is done{took}{_left_up(view)}"])


def _left_up(view: RunView) -> str:
    last = view.steps[-1]
    return f"; {last.service} is up" if last.service else ""


def _service(step: StepRun) -> str:
    return step.service or (STOP if step.name == THEN else "-")


def _last(step: StepRun) -> str:
    return "-" if step.last_s is None else say_s(step.last_s)


def _outcome(step: StepRun) -> str:
    word = {"skipped": "is done", "left": ""}.get(step.outcome, step.outcome)
    return click.style(word, fg=COLOURS.get(step.outcome))


def _command(step: StepRun) -> str:
    return printable(shlex.join(hide_words(step.command))) if step.command else "-"
