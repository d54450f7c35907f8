"""What the command of a workflow's step finds in its environment."""

from __future__ import annotations

import pytest

from stoker.launch.step import Access, step_environment
from stoker.records import ServiceView, State, WorkflowStep

ACCESS = Access("http://127.0.0.1:8700/v1", "sk-stoker-1", "/state/gateway.key")
SHELL = {"PATH": "/bin", "OPENAI_API_KEY": "sk-of-a-cloud"}


def make_service(answers: bool) -> ServiceView:
    """Returns a READY service."""
    return ServiceView(
        name="voice", model="voice-1", engine="x", state=State.READY, since=0.0, why="", address="http://127.0.0.1:9000",
        pid=1, memory_bytes=None, memory_need_bytes=0, restarts=0, plan_id="p", exit_code=0, answers=answers,
    )  # fmt: skip


def test_the_gateways_address_and_key_go_together_and_replace_those_of_the_shell() -> None:
    found = step_environment(WorkflowStep("a"), SHELL, ACCESS, None, "run/x")
    assert found == {
        "PATH": "/bin", "OPENAI_BASE_URL": ACCESS.url, "OPENAI_API_KEY": ACCESS.key, "STOKER_KEY_FILE": ACCESS.key_file,
        "STOKER_ENGINE": "run/x",
    }  # fmt: skip


@pytest.mark.parametrize("own", [{"OPENAI_BASE_URL": "https://elsewhere.example"}, {"OPENAI_API_KEY": "mine"}])
def test_a_step_that_says_one_of_them_gets_neither(own: dict[str, str]) -> None:
    found = step_environment(WorkflowStep("a", environment=own), SHELL, ACCESS, None, "run/x")
    assert ACCESS.key not in found.values()
    assert found["OPENAI_API_KEY"] == own.get("OPENAI_API_KEY", "sk-of-a-cloud")
    assert found.get("OPENAI_BASE_URL") == own.get("OPENAI_BASE_URL")


def test_a_model_is_named_and_a_program_that_is_none_is_given_with_its_address() -> None:
    model = step_environment(WorkflowStep("a"), {}, ACCESS, make_service(answers=True), "run/x")
    assert (model["STOKER_MODEL"], "STOKER_SERVICE_URL" in model) == ("voice-1", False)
    program = step_environment(WorkflowStep("a"), {}, ACCESS, make_service(answers=False), "run/x")
    assert (program["STOKER_SERVICE_URL"], "STOKER_MODEL" in program) == ("http://127.0.0.1:9000", False)


def test_a_steps_own_variables_win_but_for_the_marker_by_which_its_processes_are_found() -> None:
    step = WorkflowStep("a", environment={"PATH": "/opt/bin", "STOKER_ENGINE": "other"})
    found = step_environment(step, SHELL, ACCESS, None, "run/x")
    assert (found["PATH"], found["STOKER_ENGINE"]) == ("/opt/bin", "run/x")
