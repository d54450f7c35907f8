"""How verdicts look on a terminal."""

from __future__ import annotations

from stoker.cli.verify_text import gate_text, probe_text
from stoker.records import CheckResult, ProbeResult, Verdict, Verification

QUOTE = "'Hello! I am Stoker Demo. What can I do for you? Ask me seen t'"


def text_of(says: str) -> str:
    return probe_text(ProbeResult("tools", Verdict.FAIL, 1.0, (CheckResult("required", Verdict.FAIL, says),)))


def test_what_a_model_said_stays_on_one_line() -> None:
    lines = text_of(f"a call was required, and it says {QUOTE}").splitlines()
    assert any(line.strip() == QUOTE for line in lines), lines


def test_a_failure_is_told_beside_why_the_service_is_ready_all_the_same() -> None:
    view = Verification("http://x/v1", "demo", "llamacpp", 0.0, 1.0, 60.0, True, Verdict.FAIL, ())
    assert "demo goes on serving" in gate_text(view, "demo")
    assert not gate_text(Verification("http://x/v1", "demo", "llamacpp", 0.0, 1.0, 60.0, True, Verdict.DEGRADED, ()), "demo")
