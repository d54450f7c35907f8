"""Where a run of a workflow begins."""

from __future__ import annotations

import msgspec
import pytest

from stoker.errors import WrongUse
from stoker.plan.workflow import digest_of, plan_run
from stoker.records import RunState, Workflow, WorkflowStep
from support import fails

STEPS = (WorkflowStep("a", "chat"), WorkflowStep("b", command=("true",)), WorkflowStep("c", "voice", ("true",)))
WORKFLOW = Workflow("podcast", STEPS, then="chat")
SAVED = RunState(digest_of(WORKFLOW), 1.0, done=("a",), took_s={"a": 3.0, "gone": 1.0}, at="b", why="exit code 1")


def test_a_step_without_a_service_needs_that_of_the_step_before() -> None:
    assert [(one.name, one.service) for one in plan_run(WORKFLOW, None, 2.0).steps] == [
        ("a", "chat"), ("b", "chat"), ("c", "voice"), ("then", "chat"),
    ]  # fmt: skip
    stops = plan_run(msgspec.structs.replace(WORKFLOW, then="stop"), None, 2.0)
    assert (stops.steps[-1].name, stops.steps[-1].service) == ("then", None)
    assert len(plan_run(msgspec.structs.replace(WORKFLOW, then=None), None, 2.0).steps) == 3


@pytest.mark.parametrize(
    ("saved", "begins_at", "why"),
    [
        (None, 0, ""),
        (SAVED, 1, "goes on at `b`: exit code 1"),
        (msgspec.structs.replace(SAVED, why=""), 1, "goes on at `b`: the run before was killed there"),
        (msgspec.structs.replace(SAVED, is_over=True), 0, ""),
        (
            msgspec.structs.replace(SAVED, digest="other"),
            0,
            "begins anew: its table changed since the run that stopped",
        ),
        (msgspec.structs.replace(SAVED, digest="other", at="removed"), 0, "begins anew: its table changed since"),
        (msgspec.structs.replace(SAVED, at="then"), 3, "goes on at `then`"),
    ],
)
def test_a_run_begins_where_the_one_before_stopped(saved: RunState | None, begins_at: int, why: str) -> None:
    plan = plan_run(WORKFLOW, saved, 2.0)
    assert plan.begins_at == begins_at
    assert plan.why.startswith(why)
    assert plan.state.done == tuple(step.name for step in plan.steps[:begins_at])


def test_again_and_from_win_over_what_is_kept_and_times_stay_known() -> None:
    again = plan_run(WORKFLOW, SAVED, 2.0, again=True)
    assert (again.begins_at, again.state.took_s) == (0, {"a": 3.0})
    assert plan_run(WORKFLOW, SAVED, 2.0, from_step="c").begins_at == 2
    with fails(WrongUse, "there is no step `d`", "steps: a, b, c, then"):
        plan_run(WORKFLOW, SAVED, 2.0, from_step="d")


def test_only_a_killed_run_may_have_left_its_command_behind() -> None:
    assert plan_run(WORKFLOW, SAVED, 2.0).killed_at is None
    assert plan_run(WORKFLOW, msgspec.structs.replace(SAVED, why=""), 2.0, again=True).killed_at == "b"
    assert plan_run(WORKFLOW, msgspec.structs.replace(SAVED, why="", is_over=True), 2.0).killed_at is None


def test_every_word_of_a_table_counts_for_its_digest() -> None:
    changed = (
        msgspec.structs.replace(STEPS[1], command=("false",)),
        msgspec.structs.replace(STEPS[1], limit_s=5.0),
        msgspec.structs.replace(STEPS[1], environment={"A": "b"}),
    )
    others = [msgspec.structs.replace(WORKFLOW, step=(STEPS[0], one, STEPS[2])) for one in changed]
    assert len({digest_of(one) for one in (WORKFLOW, *others)}) == 4
