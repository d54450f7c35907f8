"""Holds the rules against a situation: what is wrong with it, and what to prefer in it. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from stoker.records import Finding, Level, Rule, Scalar, StageName, Standing
from stoker.rules.compare import Situation, all_hold, is_given_name, undecided

FORBIDDING = frozenset({"crash", "oom", "wrong-output", "security"})
# Which model it is. Dozens of rules are about one model each: where it is unknown, all of them together would say nothing.
MODEL = frozenset({"model", "architecture", "model_type"})
LEVELS: tuple[Level, ...] = ("forbid", "warn", "note")
STANDINGS: tuple[Standing, ...] = ("measured", "reported", "disputed")


def match_rules(rules: Iterable[Rule], situation: Situation) -> list[Finding]:
    """Returns what the rules find wrong, the worst first.

    A rule whose scope hangs on a fact that nobody knows warns, and says on what it hangs; one that hangs on which model it
    is finds nothing, not even for a note: nothing suggests that it is about the model that is served.
    """
    rules = tuple(rules)
    denied = {other: rule for rule in rules if rule.local and all_hold(rule.when, situation) for other in rule.contradicts}
    found = [_lowered(finding, denied.get(rule.id)) for rule in rules if rule.wrong and (finding := _find(rule, situation))]
    return sorted(found, key=lambda one: (LEVELS.index(one.level), one.rule))


def _lowered(finding: Finding, by: Rule | None) -> Finding:
    """The user's own rule wins over one of ours that it contradicts, and says so."""
    if by is None:
        return finding
    return msgspec.structs.replace(finding, level="note", why=f"your rule {by.id} says otherwise; {finding.why}")


def match_stage(rules: Iterable[Rule], stage: StageName, situation: Situation, launch_known: bool) -> list[Finding]:
    """Returns what is known of a stage of a start that took long, what certainly holds first.

    Where the launch is unknown, as for a log alone, what a rule says of its flags is left open.
    """
    told = [rule if launch_known else _unlaunched(rule) for rule in rules if stage in rule.stages]
    told.sort(key=lambda rule: (bool(undecided(rule.when, situation)), rule.id))
    return [finding for rule in told if (finding := _find(rule, situation))]


def _unlaunched(rule: Rule) -> Rule:
    """Returns the rule without what it says of the launch itself."""
    when, wrong = (
        {name: test for name, test in tests.items() if not is_given_name(name)} for tests in (rule.when, rule.wrong)
    )
    return msgspec.structs.replace(rule, when=when, wrong=wrong)


def _find(rule: Rule, situation: Situation) -> Finding | None:
    in_scope, is_wrong = all_hold(rule.when, situation), all_hold(rule.wrong, situation)
    if in_scope is False or not is_wrong:
        return None
    unknown = undecided(rule.when, situation)
    if not MODEL.isdisjoint(unknown):
        return None
    return Finding(
        level=_level(rule, certain=not unknown),
        rule=rule.id,
        what=rule.title,
        why=rule.cause + (f" (holds for {_say_scope(rule, unknown)}; what yours is, is unknown)" if unknown else ""),
        fix=rule.fix,
        standing=standing_of(rule),
        severity=rule.severity,
        use=rule.use,
        drop=rule.drop,
    )


def _level(rule: Rule, certain: bool) -> Level:
    if rule.severity == "harmless":
        return "note"
    if not certain:
        return "warn" if rule.severity in FORBIDDING else "note"
    may_forbid = rule.severity in FORBIDDING and not rule.is_disputed and not rule.only_warn
    return "forbid" if may_forbid else "warn"


def _say_scope(rule: Rule, names: list[str]) -> str:
    return ", ".join(f"{name} {rule.when[name]}" for name in names)


def standing_of(rule: Rule) -> Standing:
    """Returns how well a rule stands: disputed where anything is, else its best evidence."""
    kinds = {seen.standing for seen in rule.evidence}
    return "disputed" if "disputed" in kinds else min(kinds, key=STANDINGS.index)


def preferred(rules: Iterable[Rule], situation: Situation) -> dict[str, tuple[Scalar, Rule]]:
    """Returns what to set where nobody chose otherwise, each with the rule that says so.

    Only rules that certainly hold speak; of two that disagree the user's own wins, then the better proven, then the one
    with the narrower scope.
    """
    chosen: dict[str, tuple[Scalar, Rule]] = {}
    speaking = [rule for rule in rules if rule.prefer and all_hold(rule.when, situation)]
    for rule in sorted(speaking, key=_weight):
        chosen |= {name: (value, rule) for name, value in rule.prefer.items()}
    return chosen


def _weight(rule: Rule) -> tuple[bool, int, int, str]:
    return bool(rule.local), -STANDINGS.index(standing_of(rule)), len(rule.when), rule.id
