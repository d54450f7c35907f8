"""What a plan requires of its engine before READY, why, and what is said of one that does not give it."""

from __future__ import annotations

from typing import Any

import pytest
from known import make_ground

from stoker.engines import find
from stoker.errors import NotReadyInTime, Refused, StokerError
from stoker.plan.command import plan_command
from stoker.plan.gate import ALWAYS, find_fault
from stoker.plan.report import make_report
from stoker.records import CheckResult, KeptVerification, ProbeResult, Setting, Verdict, Verification, Wish
from support import fails

PARSER = Setting("--tool-call-parser", "hermes", "you asked for it")
THINKER = Setting("--reasoning-parser", "qwen3", "you asked for it")


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
@pytest.mark.parametrize(
    ("settings", "promised"),
    [
        ((), {}),
        ((PARSER,), {"tools": "--tool-call-parser hermes"}),
        ((THINKER,), {"reasoning": "--reasoning-parser qwen3"}),
        ((PARSER, THINKER), {"tools": "--tool-call-parser hermes", "reasoning": "--reasoning-parser qwen3"}),
        ((Setting("--reasoning-parser", "none", ""),), {}),
    ],
)
def test_an_engine_with_parsers_promises_what_it_was_given_one_for(
    engine: str, settings: tuple[Setting, ...], promised: dict[str, str]
) -> None:
    assert find(engine).promises(settings, ("tools", "thinking")) == promised


@pytest.mark.parametrize(
    ("settings", "template", "promised"),
    [
        ((), ("system", "tools"), {"tools"}),
        ((), ("system",), set()),
        ((Setting("--no-jinja", True, ""),), ("tools",), set()),
        ((Setting("--chat-template", "chatml", ""),), ("tools",), set()),
        ((Setting("reasoning", "on", ""),), ("tools", "thinking"), {"tools", "reasoning"}),
        ((Setting("reasoning", "off", ""),), ("thinking",), set()),
    ],
)
def test_llama_cpp_promises_what_the_models_own_template_does(
    settings: tuple[Setting, ...], template: tuple[str, ...], promised: set[str]
) -> None:
    assert set(find("llamacpp").promises(settings, template)) == promised


def test_a_plan_says_its_gate_and_why() -> None:
    plan = make_report(make_ground("sglang")).plan
    assert plan.gate == (*ALWAYS, "tools")
    assert plan.gate_because == "what every client relies on, tools (--tool-call-parser mistral promises it)"


@pytest.mark.parametrize("gate", [(), ("answers", "roles")])
def test_what_the_user_requires_stands_alone(gate: tuple[str, ...]) -> None:
    plan = make_report(make_ground("sglang", gate=gate)).plan
    assert (plan.gate, plan.gate_because) == (gate, "you asked for it")


def test_another_gate_is_another_plan() -> None:
    ids = {make_report(make_ground("sglang", gate=gate)).plan.plan_id for gate in ((), ("answers",))}
    assert len(ids) == 2


def command(**more: Any) -> Wish:
    """Returns the wish of a program that is no engine."""
    return Wish(name="tts", engine="command", program=("tts",), claim_gib=1.0, ready_line="up", **more)


def test_a_command_has_no_gate_unless_it_asks_for_one() -> None:
    assert plan_command(command()).gate == ()
    assert plan_command(command(served_name="voice")).gate == ()
    assert plan_command(command(served_name="voice", port=9000, gate=("answers",))).gate == ("answers",)
    with fails(Refused, "`gate` is set for tts, and no model answers there", "leave `gate` out of [service.tts]"):
        plan_command(command(gate=("answers",)))


def kept(*verdicts: Verdict, in_time: bool = True, mend: str = "") -> KeptVerification:
    """Returns what was found: a check a verdict."""
    checks = tuple(CheckResult(f"check {number}", one, "it lies", mend) for number, one in enumerate(verdicts))
    worst = Verdict.FAIL if Verdict.FAIL in verdicts else Verdict.PASS
    view = Verification("u", "m", None, 0.0, 1.0, 120.0, in_time, worst, (ProbeResult("tools", worst, 1.0, checks),))
    return KeptVerification("coder", "p1", "vllm", "0.32.0", "gate", ("tools",), view)


@pytest.mark.parametrize("verdict", [one for one in Verdict if one is not Verdict.FAIL])
def test_only_a_failure_keeps_a_service_from_being_ready(verdict: Verdict) -> None:
    found = kept(Verdict.PASS, verdict)
    assert find_fault(found) is None
    assert found.passed


def test_a_fault_names_probe_check_what_was_seen_how_to_mend_it_and_where_the_evidence_is() -> None:
    found = kept(Verdict.PASS, Verdict.FAIL, Verdict.FAIL, mend="start it with `--x`")
    fault = find_fault(found)
    assert type(fault) is StokerError
    assert fault.what == (
        "it did not pass its gate: tools (check 1) says: it lies (and 1 more); to mend it: start it with `--x`;"
        " `stoker verify --last coder` shows what was asked and answered"
    )
    assert not found.passed


def test_what_could_not_be_asked_in_time_is_no_pass() -> None:
    found = kept(Verdict.PASS, Verdict.UNKNOWN, in_time=False)
    fault = find_fault(found)
    assert type(fault) is NotReadyInTime
    assert fault.what.startswith("its gate was not through within 120 s (gate_s)")
    assert not found.passed
