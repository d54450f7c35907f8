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
from stoker.rules.check import find_problems
from stoker.rules.load import DATA, find_rule, folders, load_folder, load_rules, read_rules
from stoker.rules.measured import load_measured, measured_for
from support import fails

RULES = {rule.id: rule for rule in load_rules()}
TODAY = datetime.datetime.now(tz=datetime.UTC).date()
every_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)


def test_no_two_rules_have_one_name() -> None:
    assert [name for name, count in Counter(rule.id for rule in load_rules()).items() if count > 1] == []


@every_rule
def test_a_rule_is_as_it_should_be(rule: Rule) -> None:
    assert find_problems(rule, RULES, TODAY) == []


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[[rule]]\nid = 'a'", "missing required field"),
        ("[[rule]]\nid = 'Not A Name'", "cannot be read"),
        ("[[rule]\n", "cannot be read"),
        ("rule = 3", "Expected `array`, got `int`"),
        ("[[rules]]\nid = 'a'", "unknown field `rules`"),
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
