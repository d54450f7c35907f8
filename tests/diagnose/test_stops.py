"""A log that ends because the engine was told to stop: what is said while it stops is no fault, and all else is."""

from __future__ import annotations

import io

import pytest

from stoker.cli.diagnose_text import diagnosis_text
from stoker.diagnose.sentence import in_one_sentence
from stoker.flows.diagnose import Known, diagnose_source
from stoker.records import Diagnosis

AT = "11-26 22:12:16"
VLLM = f"(APIServer pid=101) INFO {AT} [utils.py:233] non-default args: {{'model': '/models/m'}}"
READY = "(APIServer pid=101) INFO:     Application startup complete."
STOP = f"(APIServer pid=101) INFO {AT} [launcher.py:100] [shutdown] API server: shutdown triggered"
CORE = f"(EngineCore pid=102) INFO {AT} [core.py:1313] [shutdown] EngineCore: trigger received signal=SIGTERM"
DEAD = f"(APIServer pid=101) ERROR {AT} [async_llm.py:704] EngineDeadError: EngineCore encountered an issue."
OVER = "(APIServer pid=101) INFO:     Application shutdown complete."
FAULT = "WibbleError: askew"
SLOW = (
    f"(APIServer pid=101) WARNING {AT} [vllm.py:1077] Async scheduling not supported with ngram-based speculative decoding"
)
SGLANG = "[2026-11-26 22:13:12] server_args=ServerArgs(model_path='/models/m')"
SGLANG_READY = "[2026-11-26 22:13:12] The server is fired up and ready to roll!"
SGLANG_STOP = "[2026-11-26 22:13:28] SIGTERM received. signum=None frame=None. Draining requests and shutting down..."


def told(*lines: str, has_ended: bool = False) -> Diagnosis:
    """Returns what is said of a log of these lines."""
    return diagnose_source(io.BytesIO("\n".join(lines).encode()), "log", Known({}, has_ended=has_ended))


def faults(found: Diagnosis) -> list[str]:
    """Returns the lines that look like a fault and the rules that were named."""
    return [*(line.text for line in found.unknown), *(one.rule for one in found.findings)]


@pytest.mark.parametrize(
    "lines",
    [(VLLM, READY, STOP, DEAD, FAULT, OVER), (VLLM, READY, CORE, STOP, DEAD), (SGLANG, SGLANG_READY, SGLANG_STOP, FAULT)],
    ids=["vllm", "the core first", "sglang"],
)
def test_what_is_said_while_it_stops_is_no_fault(lines: tuple[str, ...]) -> None:
    found = told(*lines)
    assert (faults(found), found.ready, found.stopped) == ([], True, True)
    assert "; it said that it is ready, and was told to stop" in diagnosis_text(found)


def test_what_went_wrong_before_the_stop_is_told() -> None:
    assert FAULT in faults(told(VLLM, READY, FAULT, STOP, OVER))
    assert "engine-core-ended" in faults(told(VLLM, READY, DEAD, STOP, OVER))


def test_what_goes_wrong_after_the_last_word_of_a_stop_is_told() -> None:
    """A restart in the same log may die before it says who it is."""
    found = told(VLLM, READY, STOP, DEAD, OVER, FAULT)
    assert (faults(found), found.stopped) == ([FAULT], True)


def test_a_core_that_is_told_by_a_server_which_fell_over_was_not_stopped() -> None:
    found = told(VLLM, READY, CORE, FAULT)
    assert (faults(found), found.stopped) == ([FAULT], False)


def test_one_that_never_was_ready_was_not_stopped_but_failed() -> None:
    found = told(VLLM, STOP, FAULT)
    assert (faults(found), found.stopped) == ([FAULT], False)


def test_another_programs_stop_is_none() -> None:
    found = told(VLLM, READY, "my-tool: cleaning up before exit", SGLANG_STOP, FAULT)
    assert (faults(found), found.stopped) == ([FAULT], False)


def test_one_that_became_ready_again_is_not_stopped_any_more() -> None:
    found = told(VLLM, READY, STOP, OVER, READY, FAULT)
    assert (faults(found), found.stopped) == ([FAULT], False)


def test_a_rule_that_tells_more_than_an_end_counts_while_it_stops_too() -> None:
    missing = "ImportError: FA2 is unavailable due to: cannot import name '_vllm_fa2_C'"
    assert faults(told(VLLM, READY, STOP, missing, OVER)) == ["vllm-flash-attention-missing"]


def test_one_that_was_told_to_stop_says_so_where_it_failed_for_that() -> None:
    found = told(VLLM, READY, STOP, OVER, has_ended=True)
    assert (found.breaks_off, found.unknown, in_one_sentence(found)) == (False, (), "it was told to stop")


def test_what_only_makes_a_start_slow_is_not_why_it_failed() -> None:
    found = told(VLLM, SLOW, FAULT, has_ended=True)
    assert [line.text for line in found.unknown] == [FAULT]
    assert in_one_sentence(found) == f"no rule explains it; it said: {FAULT}"
    assert [one.rule for one in found.findings] == ["vllm-drafts-without-overlap"]
