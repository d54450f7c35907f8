"""What `stoker diagnose` says of logs whose cause is known."""

from __future__ import annotations

import io
import re
from functools import cache

import msgspec
import pytest

from diagnose_cases import Case, read_cases
from stoker.flows.diagnose import diagnose_source, read_context
from stoker.records import Diagnosis
from stoker.rules.load import find_rule

CASES = read_cases()
KEYS = {"source", "cause", "first", "context", "top", "then", "possible", "not", "noise", "unknown", "hidden"}
every_case = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
OF_THIS_MACHINE = re.compile(r"/root/\.cache|/home/(?!me\b|user\b)\w+|hf_[A-Za-z0-9]{30}")


@cache
def _diagnose(name: str) -> Diagnosis:
    case = next(one for one in CASES if one.name == name)
    return diagnose_source(io.BytesIO(case.log), case.name, read_context(case.context))


@every_case
def test_the_first_finding_is_the_cause(case: Case) -> None:
    told = _diagnose(case.name)
    [top] = case.expected["top"]
    if top == "nothing":
        assert [one.rule for one in told.findings if one.confidence != "possible"] == []
    else:
        first = told.findings[0]
        assert f"{first.confidence} {first.rule}" == top


@every_case
def test_nothing_else_is_said_with_confidence(case: Case) -> None:
    told = _diagnose(case.name)
    expected = {*case.expected["top"][0].split(), *case.expected.get("then", [])}
    assert {one.rule for one in told.findings if one.confidence != "possible"} <= expected
    named = {one.rule for one in told.findings}
    assert set(case.expected.get("then", [])) | set(case.expected.get("possible", [])) <= named
    assert named.isdisjoint(case.expected.get("not", []))


@every_case
def test_noise_is_named_and_what_nobody_knows_is_shown(case: Case) -> None:
    told = _diagnose(case.name)
    assert set(case.expected.get("noise", [])) <= {one.rule for one in told.noise}
    for text in case.expected.get("unknown", []):
        assert any(text in line.text for line in told.unknown)
        assert told.collect


@every_case
def test_evidence_is_what_stands_in_that_very_line(case: Case) -> None:
    told = _diagnose(case.name)
    lines = case.log.decode().split("\n")
    shown = [*(one.evidence for one in told.findings), *(one.evidence for one in told.noise)]
    for seen in (line for evidence in shown for line in evidence):
        words = [word for word in re.findall(r"[A-Za-z]{4,}", seen.text.strip("…")) if word in lines[seen.line - 1]]
        assert words, f"line {seen.line} does not say {seen.text!r}"
    for secret in case.expected.get("hidden", []):
        assert secret in case.log.decode()
        assert secret not in msgspec.json.encode(told).decode()


def test_the_cases_are_many_and_speak_the_language_of_their_reader() -> None:
    assert len(CASES) >= 80
    for case in CASES:
        assert set(case.expected) <= KEYS, case.name
        assert not OF_THIS_MACHINE.search(case.log.decode().replace("hf_AbCdEf", "")), case.name
        rules = [*case.expected["top"][0].split()[1:], *case.expected.get("then", []), *case.expected.get("noise", [])]
        assert all(find_rule(rule) for rule in rules)
