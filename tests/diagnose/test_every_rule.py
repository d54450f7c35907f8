"""Each rule with a sign is found where its sign and its scope are, and is not where one of them is missing."""

from __future__ import annotations

import io
import random
import re
from collections.abc import Iterable
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any

import pytest

from near_misses import NEAR
from stoker.diagnose.anchors import LEAST, find_anchors
from stoker.flows.diagnose import Known, diagnose_source
from stoker.plan.situation import Facts
from stoker.records import Diagnosis, Rule, Scalar, Test
from stoker.rules.compare import is_given_name, passes
from stoker.rules.load import load_rules

RULES = [rule for rule in load_rules() if rule.signs]
VERSIONS = [
    "0.4.9",
    "0.5.10",
    "0.5.12",
    "0.5.15",
    "0.5.22",
    "0.18.0",
    "0.20.2",
    "0.23.1",
    "0.24.0",
    "0.26.0",
    "0.30.1",
    "12000",
]
SCOPED = [rule for rule in RULES if rule.when or rule.wrong]
every_scoped_rule = pytest.mark.parametrize("rule", SCOPED, ids=[rule.id for rule in SCOPED])
every_rule = pytest.mark.parametrize("rule", RULES, ids=[rule.id for rule in RULES])


def spell(pattern: str) -> str:
    """Returns a text that a pattern finds, the same every time."""
    return "".join(_spell(_parser.parse(pattern), random.Random(7)))


def _spell(nodes: Iterable[tuple[Any, Any]], chance: random.Random) -> Iterable[str]:
    for kind, what in nodes:
        if kind is _constants.LITERAL:
            yield chr(what)
        elif kind is _constants.NOT_LITERAL:
            yield "x"
        elif kind is _constants.ANY:
            yield " "
        elif kind is _constants.IN:
            yield _one_of(what)
        elif kind is _constants.SUBPATTERN:
            yield from _spell(what[-1], chance)
        elif kind in (_constants.MAX_REPEAT, _constants.MIN_REPEAT):
            for _ in range(max(what[0], min(1, what[1]))):
                yield from _spell(what[2], chance)
        elif kind is _constants.BRANCH:
            yield from _spell(chance.choice(what[1]), chance)


def _one_of(choices: list[tuple[Any, Any]]) -> str:
    letters: list[str] = [*"7x. _'aG", *map(chr, range(33, 127))]
    pattern: re.Pattern[str] = re.compile("[" + "".join(_class(kind, what) for kind, what in choices) + "]")
    return next(letter for letter in letters if pattern.match(letter))


def _class(kind: Any, what: Any) -> str:
    if kind is _constants.NEGATE:
        return "^"
    if kind is _constants.LITERAL:
        return re.escape(chr(what))
    if kind is _constants.RANGE:
        return f"{re.escape(chr(what[0]))}-{re.escape(chr(what[1]))}"
    return {"CATEGORY_DIGIT": r"\d", "CATEGORY_WORD": r"\w", "CATEGORY_SPACE": r"\s", "CATEGORY_NOT_SPACE": r"\S"}[str(what)]


def facts_for(rule: Rule) -> Facts:
    """Returns a situation in which everything that a rule asks for holds."""
    tests = {**rule.wrong, **rule.when}
    found: Facts = {name: value_for(name, test) for name, test in tests.items() if test != "absent"}
    both = {name for name in rule.wrong if name in rule.when}
    return found | {name: value_for(name, rule.wrong[name], rule.when[name]) for name in both}


def value_for(name: str, *tests: Test) -> Scalar:
    asked = [one for test in tests for one in (test if isinstance(test, tuple) else (test,))]
    plain = [str(one).lstrip("!").replace("*", "x").replace("[0-9]", "5") for one in asked]
    tried: list[Scalar] = [
        *(one for one in asked if not isinstance(one, str)),
        *plain,
        *VERSIONS,
        0.1,
        0.7,
        2,
        9,
        1e9,
        "else",
    ]
    fitting = [
        one for one in tried if all(passes(test, one, is_version=name in ("version", "cuda", "driver")) for test in tests)
    ]
    assert fitting, f"{name} {tests}"
    return fitting[0]


def diagnose(line: str, facts: Facts) -> Diagnosis:
    log = f"a first line\n{line}\na last line\n"
    return diagnose_source(io.BytesIO(log.encode()), "log", Known(facts, launch_known=True))


def named(told: Diagnosis) -> dict[str, str]:
    return {one.rule: one.confidence for one in told.findings} | {one.rule: "noise" for one in told.noise}


@every_rule
def test_each_sign_of_a_rule_is_found_in_its_scope(rule: Rule) -> None:
    for sign in rule.signs:
        told = diagnose(spell(sign), facts_for(rule))
        assert rule.id in named(told), f"{spell(sign)!r} is no sign of {rule.id}"
        assert told.lines == 3


@every_rule
def test_a_sign_that_a_client_wrote_into_its_prompt_is_none(rule: Rule) -> None:
    for sign in rule.signs:
        told = diagnose(f"Received request cmpl-1: prompt: 'what is {spell(sign)}?', params: n=1", facts_for(rule))
        assert rule.id not in named(told)


@every_scoped_rule
def test_a_rule_is_not_named_outside_of_its_scope(rule: Rule) -> None:
    """Each fact of the scope is turned round, one after the other; what the sign itself names cannot be."""
    line = spell(rule.signs[0])
    turned = list(turned_round(rule, line))
    assert turned, "no fact of its scope was tried"
    for facts in turned:
        assert rule.id not in named(diagnose(line, facts)), facts


def turned_round(rule: Rule, line: str) -> Iterable[Facts]:
    """Yields the situation of a rule with one fact of its scope otherwise, for each that can be known to be so."""
    for name, test in {**rule.wrong, **rule.when}.items():
        if is_given_name(name) and test in ("set", True):
            if name.startswith("--") and name not in line:  # the whole launch is known, so it was not given
                yield {other: value for other, value in facts_for(rule).items() if other != name}
        elif not (is_given_name(name) and name.startswith("$") and name[1:] in line):
            yield facts_for(rule) | {name: other_value(name, test)}


@every_rule
def test_half_of_a_sign_is_no_sign(rule: Rule) -> None:
    """A line that breaks off in it, or begins there, may mean something else."""
    for sign in rule.signs:
        whole = spell(sign)
        for half in (whole[: len(whole) // 2], whole[len(whole) // 2 :]):
            assert rule.id not in named(diagnose(half, facts_for(rule))), f"{half!r} is enough for {sign!r}"


def other_value(name: str, test: Test) -> Scalar:
    tried: list[Scalar] = ["somethingelse", "0.0.1", "99.0", 0.00001, 1e12, 1, *(str(test).lstrip("!"), True, False)]
    is_version = name in ("version", "cuda", "driver")
    return next(one for one in tried if test == "absent" or passes(test, one, is_version=is_version) is False)


@every_rule
def test_a_sure_finding_never_hangs_on_what_nobody_knows(rule: Rule) -> None:
    line = spell(rule.signs[0])
    told = named(diagnose(line, {}))
    asked = [name for name in {**rule.wrong, **rule.when} if not (name == "sm" and "sm_121" in line)]
    if len([name for name in asked if not is_given_name(name)]) > 1:
        assert told.get(rule.id, "possible") in ("possible", "noise")


@every_rule
def test_every_sign_holds_letters_by_which_its_line_is_found(rule: Rule) -> None:
    for sign in rule.signs:
        anchors = find_anchors(sign)
        assert anchors
        assert any(anchor in spell(sign).lower() for anchor in anchors)
        assert min(map(len, anchors)) >= LEAST


UNSCOPED = [rule for rule in RULES if not rule.when and not rule.wrong]


@pytest.mark.parametrize("rule", UNSCOPED, ids=[one.id for one in UNSCOPED])
def test_a_line_that_only_looks_like_the_fault_is_not_taken_for_it(rule: Rule) -> None:
    """Its sign alone makes such a rule sure, so that a near miss was written for each."""
    assert set(NEAR) == {one.id for one in UNSCOPED}
    near = NEAR[rule.id]
    words = {word for sign in rule.signs for word in re.findall(r"[a-z]{3,}", sign.lower())}
    assert words & set(re.findall(r"[a-z]{3,}", near.lower())), "it has no word of the sign, and so is no near miss"
    assert rule.id not in named(diagnose(near, {}))
