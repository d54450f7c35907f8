"""The knowledge itself: every rule that ships has evidence, a future, living links, and signs that compile."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from pathlib import Path

import pytest

from stoker.errors import StokerError, WrongUse
from stoker.facts.engine.catalogs import load_all
from stoker.facts.engine.flags import find_flag
from stoker.records import Rule
from stoker.rules import FACTS
from stoker.rules.compare import is_given_name
from stoker.rules.load import DATA, find_rule, folders, load_folder, load_rules, read_rules
from stoker.rules.measured import load_measured, measured_for
from support import fails

RULES = {rule.id: rule for rule in load_rules()}
TODAY = datetime.datetime.now(tz=datetime.UTC).date()
every_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)


def test_no_two_rules_have_one_name() -> None:
    assert [name for name, count in Counter(rule.id for rule in load_rules()).items() if count > 1] == []


@every_rule
def test_a_rule_is_to_be_looked_at_again_and_was_not_forgotten(rule: Rule) -> None:
    assert rule.review_by > TODAY, f"{rule.id} was to be reviewed by {rule.review_by}"


@every_rule
def test_evidence_is_dated_and_says_where_it_is_from(rule: Rule) -> None:
    for seen in rule.evidence:
        assert datetime.date(2024, 1, 1) < seen.date <= TODAY
        assert seen.source.startswith("https://") or " " in seen.source
        assert seen.build.strip()


@every_rule
def test_contradictions_are_linked_from_both_sides(rule: Rule) -> None:
    for other in rule.contradicts:
        assert other in RULES, f"{rule.id} contradicts {other}, which does not exist"
        assert rule.id in RULES[other].contradicts, f"{other} does not know that {rule.id} says otherwise"


@every_rule
def test_signs_are_patterns(rule: Rule) -> None:
    for sign in rule.signs:
        assert re.compile(sign)
        assert not re.search(sign, ""), f"{rule.id}: {sign!r} is found in every line"


@every_rule
def test_tests_speak_of_names_that_exist(rule: Rule) -> None:
    for name in (*rule.when, *rule.wrong):
        assert is_given_name(name) or name in FACTS, f"{rule.id} asks for `{name}`, which nobody tells"


@every_rule
def test_what_a_rule_says_is_sentences(rule: Rule) -> None:
    for text in (rule.title, rule.cause, rule.fix):
        assert len(text) > 8
        assert text == text.strip()


def test_a_rule_that_forbids_says_what_to_do_or_what_to_look_for() -> None:
    silent = [
        rule.id for rule in RULES.values() if not (rule.wrong or rule.signs or rule.prefer) and rule.severity != "harmless"
    ]
    assert silent == [], "these can neither be found nor recognised"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[[rule]]\nid = 'a'", "missing required field"),
        ("[[rule]]\nid = 'Not A Name'", "cannot be read"),
        ("[[rule]\n", "cannot be read"),
    ],
)
def test_a_malformed_rule_is_named_with_its_file(tmp_path: Path, text: str, what: str) -> None:
    (tmp_path / "odd.toml").write_text(text)
    with fails(StokerError, "odd.toml", what):
        read_rules(tmp_path / "odd.toml")


def test_a_rule_without_evidence_does_not_load(tmp_path: Path) -> None:
    body = (DATA / "budget" / "memory.toml").read_text()
    first = body[body.index("[[rule]]") : body.index("[[rule]]", body.index("[[rule]]") + 1)]
    (tmp_path / "bare.toml").write_text(re.sub(r"evidence = \[.*\]", "evidence = []", first, flags=re.DOTALL))
    with fails(StokerError, "bare.toml", "length >= 1"):
        read_rules(tmp_path / "bare.toml")


def test_the_readme_says_how_many_rules_there_are() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    assert re.findall(r"\[(\d+) of them\]\(docs/rules/", readme) == [str(len(RULES))]


def test_an_engines_rules_leave_out_the_other_engines_own() -> None:
    others = {rule.id for rule in load_folder("vllm")} if "vllm" in folders() else set()
    assert others.isdisjoint(rule.id for rule in load_rules("sglang"))


def test_a_rule_is_found_by_name() -> None:
    assert find_rule("budget-unified-share").id == "budget-unified-share"
    with fails(WrongUse, "there is no rule `budget-unified-sharé`", "did you mean `budget-unified-share`"):
        find_rule("budget-unified-sharé")


def test_measured_rates_are_rates_and_say_who_measured() -> None:
    for row in load_measured():
        assert 0 < row.least_tok_s <= row.most_tok_s < 2000
        assert row.source


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("mistralai/Mistral-Small-4-119B-2603-NVFP4", "Mistral-Small-4-119B-2603"),
        ("RedHatAI/gemma-4-26B-A4B-it-FP8-Dynamic", "Gemma4-26B-A4B"),
        ("Qwen/Qwen3.6-27B-FP8", "Qwen3.6-27B"),
    ],
)
def test_a_release_is_known_by_the_model_it_is_of(name: str, model: str) -> None:
    assert model in {row.model for row in measured_for(name)}


@pytest.mark.parametrize("name", ["org/unheard-of-7b", "", "qwen", "27b"])
def test_another_models_rates_are_not_taken_for_it(name: str) -> None:
    assert measured_for(name) == []


@every_rule
def test_flags_that_a_rule_sets_exist_in_a_known_version_of_the_engine(rule: Rule) -> None:
    engines = rule.when.get("engine") or rule.wrong.get("engine") or ()
    for engine in engines if isinstance(engines, tuple) else (engines,):
        catalogs = load_all(str(engine))
        for name in (*rule.use, *rule.prefer):
            if name.startswith("--") and catalogs:
                assert any(find_flag(catalog, name) for catalog in catalogs), f"{rule.id} sets {name}, which {engine} lacks"
