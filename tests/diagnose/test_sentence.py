"""A diagnosis in one sentence, as `stoker status` has it beside a service that failed."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from stoker.diagnose.sentence import in_one_sentence
from stoker.flows.diagnose import Known, diagnose_source

LOGS = Path(__file__).parents[1] / "engines" / "logs"
VLLM = "(APIServer pid=101) INFO 11-20 08:03:39 [utils.py:233] non-default args: {'model': '/models/m'}"
READY = "(APIServer pid=101) INFO:     Application startup complete."


def told_of(*lines: str, has_ended: bool = False) -> str:
    source = io.BytesIO("\n".join(lines).encode())
    return in_one_sentence(diagnose_source(source, "log", Known({}, has_ended=has_ended)))


@pytest.mark.parametrize(
    "said",
    [
        "Available memory on node 0 (9.11/11.21 GiB) on startup is less than desired CPU memory utilization",
        "Available memory on node 1 (1.2/11.21 GiB) on kv cache allocation is less than requested memory for kv",
    ],
)
def test_a_rule_is_named_with_how_sure_it_is(said: str) -> None:
    found = told_of(VLLM, f"ValueError: {said} (4.0 GiB).")
    assert found.endswith("(certain; rule node-memory-below-share)")


def test_what_no_rule_explains_is_quoted() -> None:
    assert told_of(VLLM, "WibbleError: askew") == "no rule explains it; it said: WibbleError: askew"
    assert len(told_of(VLLM, "WibbleError: " + "askew " * 999)) < 250


def test_what_is_only_possible_is_said_so_beside_the_line() -> None:
    found = told_of(*(LOGS / "vllm-0.32.0-cpu-core-killed.log").read_text().splitlines())
    assert found.startswith("no rule explains it; it said: ")
    assert "; possible: " in found
    assert "(rule engine-core-ended)" in found


def test_a_start_that_breaks_off_is_told_by_its_last_line() -> None:
    assert told_of("frobd starts", "reading weights") == "no rule explains it; it said: reading weights"


def test_the_last_line_of_one_that_served_stays_where_it_is() -> None:
    """It may hold what a client wrote, and this sentence reaches other clients."""
    assert told_of(VLLM, READY, "a client's words", has_ended=True) == ""
    assert told_of("") == ""
