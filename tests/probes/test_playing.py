"""How probes are played: the budget, what is required, what thinks, who else asks, and what is said of a router."""

from __future__ import annotations

import pytest

from lying_engine import KEY, MODEL, lying_engine
from probing import found, prove
from stoker.counters import read_counters
from stoker.flows.gating import gate_probes
from stoker.flows.verify import QUICK_BUDGET_S, choose_probes, verify
from stoker.probes import find, names
from stoker.probes.kit.probe import name_of
from stoker.records import Target, Verdict, worst

SLOW_TOKENS_S = 30.0
REST_S = 10.0  # prompts, and what the checks wait for; most answers are shorter than they may be


def test_the_default_set_ends_within_a_minute_at_thirty_tokens_a_second() -> None:
    tokens = sum(probe.tokens for probe in choose_probes((), (), deep=False))
    assert tokens / SLOW_TOKENS_S + REST_S <= QUICK_BUDGET_S


@pytest.mark.parametrize("name", names())
def test_a_probe_says_what_it_is_for(name: str) -> None:
    probe = find(name)
    assert probe.name == name
    assert all((probe.sends.endswith("."), probe.expects.endswith("."), probe.means.endswith("."), probe.mend))
    assert not probe.mend.endswith("."), "it is said within a sentence"
    assert len({name_of(check) for check in probe.checks}) == len(probe.checks) > 0
    assert all((check.__doc__ or "").strip() for check in probe.checks)


def test_the_largest_default_gate_generates_for_ten_seconds_at_most_and_usually_for_five() -> None:
    probes = gate_probes(("answers", "identity", "streaming", "tools", "reasoning"))
    assert sum(probe.tokens for probe in probes) / SLOW_TOKENS_S <= 16
    without_thinking = sum(probe.tokens for probe in probes if probe.name != "reasoning")
    assert without_thinking / SLOW_TOKENS_S <= 8  # a call of a tool takes a half of what it may


@pytest.mark.parametrize("name", names())
def test_a_gate_asks_some_of_a_probes_checks_or_all(name: str) -> None:
    probe = find(name)
    assert set(probe.gate) <= set(probe.checks)
    assert bool(probe.gate) == bool(probe.gate_tokens)
    assert probe.gate_tokens <= probe.tokens
    assert probe.for_gate().checks == (probe.gate or probe.checks)


def test_a_gate_asks_in_the_order_of_all_probes_whatever_its_own() -> None:
    assert [probe.name for probe in gate_probes(("tools", "stop", "answers"))] == ["answers", "tools", "stop"]


def test_what_was_not_asked_in_time_is_unknown_and_not_passed() -> None:
    with lying_engine() as engine:
        view = prove(engine.url, budget_s=0.4)
    late = [check.says for probe in view.probes for check in probe.checks if check.verdict is Verdict.UNKNOWN]
    assert (found(view)["limits: bad type"][0], view.in_time) == (Verdict.UNKNOWN, False)
    assert {said for said in late if "not asked" not in said} == {"the time was over before it could be asked to its end"}


def test_not_offered_is_a_failure_only_where_it_is_required() -> None:
    with lying_engine("refuses-tools") as engine:
        free, bound = prove(engine.url, "tools"), prove(engine.url, "tools", required=("tools",))
    assert found(free)["tools: auto"][0] is Verdict.NOT_OFFERED
    assert found(bound)["tools: auto"][0] is Verdict.FAIL
    assert found(bound)["tools: auto"][1].startswith("required, and not offered: HTTP 400")


def test_what_is_required_is_asked_although_it_is_deep() -> None:
    quick = {probe.name for probe in choose_probes((), (), deep=False)}
    assert {probe.name for probe in choose_probes((), ("vision",), deep=False)} - quick == {"vision"}
    assert [probe.name for probe in choose_probes(("tools", "answers"), ("n",), deep=False)] == ["answers", "tools", "n"]


def test_the_flags_that_are_missing_are_named_by_the_engine_and_by_how_its_model_writes_calls() -> None:
    with lying_engine("refuses-tools", "writes-calls") as engine:
        [check] = [one for one in prove(engine.url, "tools").probes[0].checks if one.name == "auto"]
    assert check.mend == "start it with `--enable-auto-tool-choice --tool-call-parser hermes`"


def test_a_model_that_thinks_unasked_is_asked_not_to() -> None:
    with lying_engine("thinks-unasked") as engine:
        view = prove(engine.url, "answers", "stop", "structured")
    assert view.verdict is Verdict.PASS
    assert all("enable_thinking" in one.body for check in view.probes[1].checks for one in check.exchanges)


def test_more_than_was_sent_proves_nothing() -> None:
    with lying_engine("counts-for-others") as engine:
        verdict, said = found(prove(engine.url, "identity"))["identity: counters"]
    assert verdict is Verdict.UNKNOWN
    assert "others ask it too" in said


def test_a_router_is_proved_by_the_engine_behind_it() -> None:
    with lying_engine() as front, lying_engine() as engine:
        target = Target(f"{front.url}/v1", MODEL, KEY, engine_url=engine.url, engine_key=KEY)
        view = verify(target, choose_probes(("identity",), (), deep=False), (), 30.0, lambda result: None)
    verdict, said = found(view)["identity: counters"]
    assert verdict is Verdict.FAIL
    assert said.startswith("vllm counted 0 requests of 3, 0 generated tokens of 18: the rest was answered by somebody else")
    assert said.endswith("under the name honest")


def test_what_the_engine_refuses_and_the_router_answers_is_told_with_the_engines_own_words() -> None:
    with lying_engine() as front, lying_engine("refuses-tools", "writes-calls") as engine:
        target = Target(f"{front.url}/v1", MODEL, KEY, engine_url=engine.url, engine_key=KEY)
        view = verify(target, choose_probes(("failover",), (), deep=False), (), 30.0, lambda result: None)
    [check] = [one for one in view.probes[0].checks if one.name == "tool choice"]
    assert check.verdict is Verdict.FAIL
    assert check.says.startswith("these 3 requests of 3 were answered by the other model")
    assert 'because the first returned HTTP 400: "auto" tool choice requires' in check.says
    assert "start it with `--enable-auto-tool-choice --tool-call-parser hermes`" in check.mend


def test_how_to_mend_forbidden_tools_is_told_in_the_words_of_the_engine_that_runs() -> None:
    with lying_engine("writes-calls") as engine:
        [check] = [one for one in prove(engine.url, "tools").probes[0].checks if one.name == "none"]
    assert (check.verdict, "--exclude-tools-when-tool-choice-none" in check.mend) == (Verdict.DEGRADED, True)


def test_an_engine_that_calls_the_model_otherwise_is_asked_by_its_own_name() -> None:
    with lying_engine() as front, lying_engine("refuses-tools", model="org/honest") as engine:
        target = Target(f"{front.url}/v1", MODEL, KEY, engine_url=engine.url, engine_key=KEY)
        view = verify(target, choose_probes(("failover",), (), deep=False), (), 30.0, lambda result: None)
    assert "because the first returned HTTP 400" in found(view)["failover: tool choice"][1]


def test_an_engine_that_refuses_everything_is_no_witness() -> None:
    with lying_engine() as front, lying_engine() as engine:
        target = Target(f"{front.url}/v1", MODEL, KEY, engine_url=engine.url, engine_key="sk-not-its-key")
        view = verify(target, choose_probes(("failover",), (), deep=False), (), 30.0, lambda result: None)
    assert {verdict for verdict, _ in found(view).values()} == {Verdict.PASS}


def test_the_worst_verdict_counts() -> None:
    assert worst([Verdict.PASS, Verdict.NOT_OFFERED]) is Verdict.PASS
    assert worst([Verdict.PASS, Verdict.UNKNOWN]) is Verdict.UNKNOWN
    assert worst([Verdict.DEGRADED, Verdict.FAIL, Verdict.PASS]) is Verdict.FAIL
    assert worst([]) is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("text", "engine", "requests", "tokens"),
    [
        ('vllm:request_success_total{a="1"} 2.0\nvllm:request_success_total{a="2"} 3.0\n', "vllm", 5, None),
        ("sglang:num_requests_total 3.0\nsglang:generation_tokens_total 1288.0\n", "sglang", 3, 1288),
        ("# HELP x y\nllamacpp:tokens_predicted_total 12\n", "llamacpp", None, 12),
        ("vllm:request_success_total NaN\n", "vllm", 0, None),
    ],
)
def test_counters_are_read_from_each_engines_metrics(
    text: str, engine: str, requests: int | None, tokens: int | None
) -> None:
    counters = read_counters(text)
    assert counters is not None
    assert (counters.engine, counters.totals.get("requests_total")) == (engine, requests)
    assert counters.totals.get("generated_tokens_total") == tokens


@pytest.mark.parametrize(
    "text", ["", "<html>", "process_cpu_seconds_total 1\n", "vllm:request_success_total\n", "\0 1\n{ 2"]
)
def test_what_is_no_engines_metrics_counts_nothing(text: str) -> None:
    assert read_counters(text) is None
