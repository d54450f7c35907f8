"""A workflow: steps that are run one after the other, each with the service it needs; how far a run came."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from stoker.records.base import Record

STOP = "stop"
THEN = "then"
Limit = Annotated[float, msgspec.Meta(gt=0, le=7 * 24 * 3600)]
Word = Annotated[str, msgspec.Meta(min_length=1)]
RunOutcome = Literal["done", "failed", "interrupted", "planned"]
StepOutcome = Literal["done", "failed", "interrupted", "skipped", "left"]


class WorkflowStep(Record, frozen=True):
    """One step: the service that it needs is brought up, then its command is run.

    A step without `service` needs that of the step before. `cwd` is a folder, `limit_s` how long the command may take.
    """

    name: str
    service: str | None = None
    command: tuple[Word, ...] = ()
    limit_s: Limit = 4 * 3600.0
    cwd: str = "."
    environment: dict[str, str] = {}  # noqa: RUF012 - msgspec copies it


class Workflow(Record, frozen=True):
    """A `[workflow.NAME]` table; `then` is the service that is up afterwards.

    'stop': none of those that it names; None: the one of the last step stays up.
    """

    name: str
    step: tuple[WorkflowStep, ...]
    then: str | None = None


class StepRun(Record, frozen=True):
    """How a step went; `took_s` is None where it did not run, `last_s` how long it took when it was last done."""

    name: str
    service: str | None
    outcome: StepOutcome
    took_s: float | None = None
    last_s: float | None = None
    command: tuple[str, ...] = ()


class RunState(Record, frozen=True):
    """How far a workflow came, kept between runs: `done` are steps of the run under way, `took_s` how long each last took.

    `digest` is of the table by which it was run. `at` is the step under way, or that failed or was interrupted; `why` tells
    which of the two, and is empty as long as it runs, so also after a run that was killed.
    """

    digest: str
    began: float
    done: tuple[str, ...] = ()
    took_s: dict[str, float] = {}  # noqa: RUF012
    is_over: bool = False
    at: str | None = None
    why: str = ""


class RunPlan(Record, frozen=True):
    """What a run will do: all steps, each with the service it needs, where it begins and why, and the state it begins with.

    `killed_at` is the step in which the run before was killed, so that its command may still be running.
    """

    workflow: str
    steps: tuple[WorkflowStep, ...]
    begins_at: int
    why: str
    state: RunState
    killed_at: str | None = None


class RunView(Record, frozen=True):
    """A run as programs see it: each step with its outcome, the service that is up for it, and how it ended."""

    workflow: str
    outcome: RunOutcome
    steps: tuple[StepRun, ...]
    why: str = ""
    exit_code: int = 0
    took_s: float | None = None


class RunningView(Record, frozen=True):
    """The workflow that runs now: which process runs it, and since when."""

    workflow: str
    pid: int
    since: float


class IdleSettings(Record, frozen=True):
    """The `[idle]` table: the service that comes back when nothing was asked of any for `idle_s`."""

    default_service: str | None = None
    idle_s: Limit = 1800.0


class IdleView(Record, frozen=True):
    """Whether the default service comes back by itself: `returns_at` is when, None where it does not; `why` tells."""

    default_service: str
    returns_at: float | None
    why: str
