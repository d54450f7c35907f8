"""Holds the rules against a plan's settings; mends what the plan chose itself, what the user chose is only found. Pure."""

from __future__ import annotations

import json

from stoker.plan.ground import Ground, Settings
from stoker.plan.situation import setting_facts, share_facts
from stoker.records import Finding, Scalar, Setting
from stoker.rules.match import match_rules

ROUNDS = 8


def mend_settings(settings: Settings, fixed: set[str], ground: Ground) -> tuple[Settings, list[Finding]]:
    """Returns the settings after as many rounds of mending as change anything, and what the rules still find.

    `fixed` are the names that the user decided: they stay as they are, whatever a rule says of them.
    """
    findings: list[Finding] = []
    for _ in range(ROUNDS):
        settings = {name: one for name, one in settings.items() if name in fixed or _exists(name, ground)}
        facts = ground.facts() | setting_facts(settings.values())
        findings = match_rules(ground.rules, facts | share_facts(facts))
        changed = settings
        for finding in findings:
            changed = _with_fix(changed, finding, fixed)
        if changed == settings:
            break
        settings = changed
    return settings, findings


def _exists(name: str, ground: Ground) -> bool:
    return not name.startswith("--") or ground.knows(name)


def _with_fix(settings: Settings, finding: Finding, fixed: set[str]) -> Settings:
    if finding.level == "note":
        return settings
    changed = {name: one for name, one in settings.items() if name not in finding.drop or name in fixed}
    for name, value in finding.use.items():
        flag, _, entry = name.partition(".") if name.startswith("--") else (name, "", "")
        if name.startswith(("--", "$")) and flag not in fixed:
            value = with_entry(changed[flag].value if flag in changed else None, entry, value) if entry else value
            changed[flag] = Setting(flag, value, finding.what, finding.rule)
    return changed


def with_entry(config: object, entry: str, value: Scalar) -> str:
    """Returns the JSON of a flag with one entry set; vLLM would take `--flag.entry` beside `--flag` for the whole of it."""
    tree = json.loads(config) if isinstance(config, str) and config.startswith("{") else {}
    place = tree
    *outer, last = entry.split(".")
    for name in outer:
        place = place.setdefault(name, {})
    place[last] = value
    return json.dumps(tree, separators=(",", ":"))
