"""How a rule looks on a terminal."""

from __future__ import annotations

import click

from stoker.cli.show import table, width, wrapped
from stoker.records import Rule
from stoker.rules.match import standing_of

OTHER_COLUMNS = 28  # severity, standing and the gaps


def list_text(rules: list[Rule]) -> str:
    """Returns rules as a table."""
    if not rules:
        return "No rule speaks of that."
    room = max(20, width() - max(len(rule.id) for rule in rules) - OTHER_COLUMNS)
    rows = [(rule.id, rule.severity, standing_of(rule), _cut(rule.title, room)) for rule in rules]
    return f"{table(('rule', 'severity', 'standing', 'what'), rows)}\n\n{len(rules)} rules; `stoker rules ID` shows one."


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1]}…"


def rule_text(rule: Rule) -> str:
    """Returns one rule with everything that is known of it."""
    lines = [click.style(rule.id, bold=True), *_wrapped("", rule.title), "", *_wrapped("why    ", rule.cause)]
    lines += _wrapped("fix    ", rule.fix)
    lines += _wrapped("scope  ", say_tests(rule.when) or "everywhere")
    lines += _wrapped("finds  ", say_tests(rule.wrong))
    lines += _wrapped("sets   ", say_tests(rule.use))
    lines += _wrapped("leaves out  ", ", ".join(rule.drop))
    lines += _wrapped("prefers  ", say_tests(rule.prefer))
    lines += [f"  sign   {sign}" for sign in rule.signs]
    lines += _wrapped("explains  ", f"a long start ({', '.join(rule.stages)})" if rule.stages else "")
    lines += ["", f"{standing_of(rule)}, {rule.severity}; to be looked at again by {rule.review_by}"]
    for seen in rule.evidence:
        lines += _wrapped("  ", f"{seen.date} {seen.standing}, {seen.build}: {seen.says}".rstrip(": "))
        lines.append(f"      {seen.source}")
    lines += [f"your own rule, which wins over ours: {rule.local}"] if rule.local else []
    return "\n".join(lines + [f"  contradicts {other}" for other in rule.contradicts])


def say_tests(tests: object) -> str:
    """Returns tests or settings as people read them."""
    named = dict(tests) if isinstance(tests, dict) else {}
    return ", ".join(
        f"{name} {' or '.join(map(str, test)) if isinstance(test, tuple) else test}" for name, test in named.items()
    )


def _wrapped(name: str, text: str) -> list[str]:
    return wrapped(f"{name}{text}", "  ", " " * (2 + len(name))) if text else []
