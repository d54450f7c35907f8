"""What a rule finds in a situation: refusal, warning or note, and what a plan should prefer."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from stoker.records import Evidence, Rule
from stoker.rules.match import match_rules, match_stage, preferred

DAY = datetime.date(2026, 5, 1)


def evidence(standing: str = "measured") -> Evidence:
    return Evidence("https://example.org/thread/1", "some build", DAY, standing)  # type: ignore[arg-type]


def make_rule(**changes: Any) -> Rule:
    facts: dict[str, Any] = {
        "id": "some-rule", "title": "It crashes", "severity": "crash", "topic": "flag", "cause": "no kernels",
        "fix": "use triton",
        "evidence": (evidence(),), "review_by": datetime.date(2027, 1, 1),
        "when": {"engine": "sglang", "sm": "12.1"}, "wrong": {"--attention-backend": "flashinfer"},
        "use": {"--attention-backend": "triton"},
    }  # fmt: skip
    return Rule(**{**facts, **changes})


WRONG = {"engine": "sglang", "sm": "12.1", "--attention-backend": "flashinfer"}


def test_a_measured_crash_is_refused_with_what_mends_it() -> None:
    [finding] = match_rules([make_rule()], WRONG)
    assert (finding.level, finding.rule, finding.what, finding.why) == ("forbid", "some-rule", "It crashes", "no kernels")
    assert finding.use == {"--attention-backend": "triton"}


@pytest.mark.parametrize(
    ("changes", "level"),
    [
        ({"severity": "oom"}, "forbid"),
        ({"severity": "wrong-output"}, "forbid"),
        ({"severity": "security"}, "forbid"),
        ({"severity": "slow"}, "warn"),
        ({"severity": "silent"}, "warn"),
        ({"severity": "harmless"}, "note"),
        ({"evidence": (evidence("reported"),)}, "forbid"),
        ({"evidence": (evidence("disputed"),)}, "warn"),
        ({"evidence": (evidence(), evidence("disputed"))}, "warn"),
        ({"only_warn": True}, "warn"),
    ],
)
def test_only_what_is_certain_and_undisputed_is_refused(changes: dict[str, Any], level: str) -> None:
    assert [finding.level for finding in match_rules([make_rule(**changes)], WRONG)] == [level]


@pytest.mark.parametrize("change", [{"engine": "vllm"}, {"sm": "9.0"}, {"--attention-backend": "triton"}])
def test_nothing_is_found_outside_the_scope_or_without_the_mistake(change: dict[str, str]) -> None:
    assert match_rules([make_rule()], {**WRONG, **change}) == []


def test_an_unknown_scope_warns_and_says_what_it_hangs_on() -> None:
    rule = make_rule(when={"engine": "sglang", "version": "<0.5.12"})
    [finding] = match_rules([rule], WRONG)
    assert finding.level == "warn"
    assert "version <0.5.12; what yours is, is unknown" in finding.why
    [finding] = match_rules([make_rule(when={"version": "<1"}, severity="slow")], WRONG)
    assert finding.level == "note"


@pytest.mark.parametrize("name", ["model", "architecture", "model_type"])
def test_a_rule_about_one_model_is_silent_where_the_model_is_unknown(name: str) -> None:
    rule = make_rule(when={"engine": "sglang", name: "*some-model*"})
    assert match_rules([rule], WRONG) == []
    assert match_rules([make_rule(when={**rule.when, "version": "<0.5.12"})], WRONG) == []
    assert len(match_rules([rule], {**WRONG, name: ("org/some-model-4",)})) == 1


def test_a_rule_without_a_mistake_finds_nothing() -> None:
    assert match_rules([make_rule(wrong={})], WRONG) == []


def test_the_worst_comes_first() -> None:
    rules = [make_rule(id="b", severity="slow"), make_rule(id="a", severity="harmless"), make_rule(id="c")]
    assert [finding.rule for finding in match_rules(rules, WRONG)] == ["c", "b", "a"]


def test_a_preference_speaks_only_where_its_scope_certainly_holds() -> None:
    rule = make_rule(prefer={"--attention-backend": "triton"})
    assert preferred([rule], {"engine": "sglang", "sm": "12.1"}) == {"--attention-backend": ("triton", rule)}
    assert preferred([rule], {"engine": "sglang"}) == {}
    assert preferred([rule], {"engine": "sglang", "sm": "9.0"}) == {}


def test_of_two_preferences_the_better_proven_wins_then_the_narrower() -> None:
    wide = make_rule(id="wide", when={"engine": "sglang"}, prefer={"context": 1})
    narrow = make_rule(id="narrow", prefer={"context": 2})
    disputed = make_rule(
        id="disputed", when={**narrow.when, "arch": "x"}, prefer={"context": 3}, evidence=(evidence("disputed"),)
    )
    situation = {"engine": "sglang", "sm": "12.1", "arch": "x"}
    assert preferred([narrow, disputed, wide], situation)["context"] == (2, narrow)
    assert preferred([disputed, wide], situation)["context"] == (1, wide)


SLOW = {"stages": ("autotune",), "severity": "slow"}


def test_a_stage_is_explained_by_the_rules_that_name_it() -> None:
    rules = [make_rule(**SLOW), make_rule(id="other", stages=("graphs",)), make_rule(id="silent")]
    assert [finding.rule for finding in match_stage(rules, "autotune", WRONG, launch_known=True)] == ["some-rule"]
    assert match_stage(rules, "weights", WRONG, launch_known=True) == []


def test_a_rule_without_a_mistake_explains_a_stage_in_its_scope() -> None:
    rule = make_rule(**SLOW, wrong={})
    assert [finding.fix for finding in match_stage([rule], "autotune", WRONG, launch_known=True)] == ["use triton"]
    assert match_stage([rule], "autotune", {**WRONG, "sm": "9.0"}, launch_known=True) == []


def test_a_stage_is_not_explained_by_a_mistake_that_was_not_made() -> None:
    rule = make_rule(**SLOW, wrong={"--no-autotune": "absent"})
    assert match_stage([rule], "autotune", {**WRONG, "--no-autotune": "true"}, launch_known=True) == []
    assert len(match_stage([rule], "autotune", WRONG, launch_known=True)) == 1


def test_an_unknown_launch_leaves_flags_open() -> None:
    rule = make_rule(**SLOW, when={"engine": "sglang", "$VARIABLE": "absent"})
    assert len(match_stage([rule], "autotune", {"engine": "sglang"}, launch_known=False)) == 1
    assert match_stage([rule], "autotune", {"engine": "vllm"}, launch_known=False) == []


def test_what_certainly_holds_is_told_first() -> None:
    rules = [make_rule(**SLOW, id="a", when={"sm": "12.1"}), make_rule(**SLOW, id="b", when={"engine": "sglang"})]
    found = match_stage(rules, "autotune", {"engine": "sglang", "--attention-backend": "flashinfer"}, launch_known=True)
    assert [finding.rule for finding in found] == ["b", "a"]
    assert "what yours is, is unknown" in found[1].why


OWN = {"id": "own-rule", "local": "/home/me/rules/own-rule.toml", "wrong": {}, "contradicts": ("some-rule",)}


def test_the_users_own_rule_wins_over_the_one_that_it_contradicts() -> None:
    [finding] = match_rules([make_rule(), make_rule(**OWN)], WRONG)
    assert (finding.level, finding.rule) == ("note", "some-rule")
    assert finding.why.startswith("your rule own-rule says otherwise; ")


def test_it_wins_only_in_its_own_scope_and_only_where_it_is_the_users() -> None:
    elsewhere = make_rule(**OWN | {"when": {"engine": "vllm"}})
    ours = make_rule(**OWN | {"local": ""})
    for other in (elsewhere, ours):
        assert [finding.level for finding in match_rules([make_rule(), other], WRONG)] == ["forbid"]


def test_what_the_users_own_rule_prefers_is_set_whatever_is_proven_of_others() -> None:
    ours = make_rule(prefer={"--x": 1}, when={"engine": "sglang", "sm": "12.1", "unified": True})
    own = make_rule(**OWN | {"prefer": {"--x": 2}, "when": {}, "evidence": (evidence("reported"),)})
    found = preferred([own, ours], WRONG | {"unified": True})
    assert {name: (value, rule.id) for name, (value, rule) in found.items()} == {"--x": (2, "own-rule")}
