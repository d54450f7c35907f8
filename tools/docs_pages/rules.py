"""`docs/rules/`: a page a rule, from the data, and an index."""

from __future__ import annotations

from stoker.records import Evidence, Rule
from stoker.rules.load import folders, load_folder
from stoker.rules.match import FORBIDDING, standing_of

NOTE = "<!-- Written by tools/make_docs.py from src/stoker/rules/data. -->"
EFFECTS = {"forbid": "Refused.", "warn": "Warned of.", "note": "Only told.", "": "Not looked for in launches."}


def pages() -> dict[str, str]:
    """Returns every page by its path in `docs/`."""
    found = {f"rules/{rule.id}.md": _page(rule, folder) for folder in folders() for rule in load_folder(folder)}
    return {"rules/index.md": _index(), **found}


def _index() -> str:
    lines = [
        "# Rules",
        "",
        NOTE,
        "",
        "What is known to go wrong, and how well. `stoker rules` shows the same on a terminal.",
        "",
    ]
    for folder in folders():
        rules = load_folder(folder)
        if rules:
            lines += [f"## {folder}", "", "| rule | severity | standing | what |", "| --- | --- | --- | --- |"]
            lines += [
                f"| [{rule.id}]({rule.id}.md) | {rule.severity} | {standing_of(rule)} | {rule.title} |" for rule in rules
            ]
            lines.append("")
    return "\n".join(lines)


def _page(rule: Rule, folder: str) -> str:
    lines = [
        f"# {rule.title}",
        "",
        NOTE,
        "",
        f"`{rule.id}`, {folder}. {rule.severity}, {standing_of(rule)}. {_effect(rule)}",
        "",
    ]
    lines += ["**Why.** " + rule.cause, "", "**What to do.** " + rule.fix, ""]
    lines += _table("Where it holds", rule.when) + _table("What is wrong", rule.wrong) + _table("What mends it", rule.use)
    lines += [f"Left out: {', '.join(f'`{name}`' for name in rule.drop)}", ""] if rule.drop else []
    lines += _table("What a plan sets here", rule.prefer)
    lines += ["## Signs in a log", "", *(f"    {sign}" for sign in rule.signs), ""] if rule.signs else []
    lines += [f"Explains what takes long in a start: {', '.join(rule.stages)}.", ""] if rule.stages else []
    lines += ["## Evidence", "", *(_evidence(seen) for seen in rule.evidence), ""]
    lines += (
        ["## Says otherwise", "", *(f"- [{other}]({other}.md)" for other in rule.contradicts), ""]
        if rule.contradicts
        else []
    )
    return "\n".join([*lines, f"To be looked at again by {rule.review_by}."]) + "\n"


def _effect(rule: Rule) -> str:
    if not rule.wrong:
        return EFFECTS[""]
    if rule.severity == "harmless":
        return EFFECTS["note"]
    forbids = rule.severity in FORBIDDING and not rule.is_disputed and not rule.only_warn
    return EFFECTS["forbid" if forbids else "warn"]


def _table(title: str, tests: object) -> list[str]:
    named = dict(tests) if isinstance(tests, dict) else {}
    rows = [f"| `{name}` | {_say(test)} |" for name, test in named.items()]
    return [f"## {title}", "", "| name | test |", "| --- | --- |", *rows, ""] if rows else []


def _say(test: object) -> str:
    return " or ".join(f"`{one}`" for one in test) if isinstance(test, tuple) else f"`{test}`"


def _evidence(seen: Evidence) -> str:
    source = f"<{seen.source}>" if seen.source.startswith("https://") and " " not in seen.source else seen.source
    return f"- {seen.date}, {seen.standing}, {seen.build}: {seen.says} {source}".replace(":  ", ": ")
