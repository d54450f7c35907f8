"""How a plan and its findings look on a terminal."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

import click
import msgspec

from stoker.cli.rates_text import say_prediction, say_rate
from stoker.cli.show import printable, table, wrapped
from stoker.plan.secrets import HIDDEN, hide_words, is_secret
from stoker.records import Alternative, Budget, Finding, Plan, Report, Rule, Setting, SpeedView, say_bytes
from stoker.rules.load import load_rules

COLOURS = {"forbid": "red", "warn": "yellow", "note": "cyan"}
WORDS = {"forbid": "refused", "warn": "warning", "note": "note"}
WIDEST = 40


def plan_text(report: Report, box: str, explain: bool, alternatives: bool) -> str:
    """Returns a report as text: what would run, the memory, what is wrong, and what else there is."""
    plan = report.plan
    version = f" {plan.engine_version}" if plan.engine_version else ""
    lines = [f"{click.style(plan.service, bold=True)}  {plan.engine}{version}: {report.engine_because or 'as before'}", ""]
    lines += _memory(report.budget, box, explain) if report.budget else _declared(plan)
    lines += _speed(report.speed) if report.speed else []
    rules = {rule.id: rule for rule in load_rules(plan.engine)}
    lines += _own_words(plan) if explain and plan.is_engine else []
    lines += _settings(plan.settings, rules, explain)
    lines += ["", "left to the engine:", *_settings(report.left, {}, explain=False)] if explain and report.left else []
    lines += ["", *findings_lines(report.findings, rules if explain else {})] if report.findings else []
    if alternatives:
        lines += ["", *_alternatives(report.alternatives)]
    return "\n".join(lines)


def _declared(plan: Plan) -> list[str]:
    """A command's words, and the memory that its owner says it takes: no model tells it."""
    memory = f"memory  {say_bytes(plan.memory_need_bytes)}, {plan.memory_because} (claim_gib)"
    return ["program " + printable(shlex.join(hide_words(plan.program))), memory, ""]


def _own_words(plan: Plan) -> list[str]:
    """What every launch is told, whatever the plan: where the model is, what it is called, and who may reach it."""
    port = str(plan.port) if plan.port else "a free one"
    rows = [
        ("  model", plan.model_path, "the files that you named"),
        ("  name", plan.model, "what clients ask for; the gateway answers for no other"),
        ("  address", f"127.0.0.1, port {port}", "the engine is reached through the gateway alone"),
        ("  gate", " ".join(plan.gate) or "none", f"has to pass before it is READY: {plan.gate_because}"),
    ]
    return [table(("  launch", "", ""), rows), ""]


def _memory(budget: Budget, box: str, explain: bool) -> list[str]:
    here = box == "this"
    place = "this machine" if here else f"a {box}" if "/" not in box else box
    machine = f"fits {place}" if budget.fits_machine else f"does not fit {place}"
    now = {None: "", True: ", fits now", False: ", does not fit now"}[budget.fits_now] if here else ""
    available = "" if budget.available_bytes is None or not here else f", {say_bytes(budget.available_bytes)} available now"
    room = f"{say_bytes(budget.usable_bytes)} for engines{available}"
    lines = [f"memory  {say_bytes(budget.total_bytes)}: {machine}{now} ({room})"]
    if budget.kv_requests is not None and budget.kv_tokens is not None:
        lines.append(f"        the cache holds {budget.kv_tokens:,} tokens, {budget.kv_requests:g} full contexts")
    if explain:
        parts = [*budget.lines, *(msgspec.structs.replace(line, name=f"({line.name})") for line in budget.kept)]
        rows = [(f"  {line.name}", say_bytes(line.need_bytes), line.because) for line in parts if line.need_bytes]
        lines += [table(("  part", "bytes", "how it was counted"), rows)]
    return [*lines, *(f"        unknown, and not counted: {what}" for what in budget.unknown), ""]


def _speed(speed: SpeedView) -> list[str]:
    """What one request should get, marked as the prediction it is."""
    most = f"the memory allows {say_rate(speed.limit_tok_s)} tok/s"
    if speed.expected is None:
        return [*wrapped(f"speed   {most} for one request; {speed.why}", "", "        "), ""]
    drafted = [
        f"{say_prediction(one.prediction)} with {one.draft_tokens} draft tokens on {one.content}" for one in speed.drafting
    ]
    said = f"speed   predicted: {say_prediction(speed.expected)} for one request, and {most}"
    return [*wrapped("; ".join([said, *drafted]), "", "        "), ""]


def _settings(settings: Iterable[Setting], rules: dict[str, Rule], explain: bool) -> list[str]:
    said = [one for one in settings if one.name.startswith(("--", "$"))] or list(settings)
    column = min(max((len(_say(one)) for one in said), default=0), WIDEST)
    lines, shown = [], set[str]()
    for one in said:
        lines += _line(one, column)
        if explain and one.rule in rules and one.rule not in shown:
            lines += [text for seen in evidence_lines(rules[one.rule]) for text in wrapped(seen, "      ", "        ")]
        shown.add(one.rule)
    return lines


def _line(setting: Setting, column: int) -> list[str]:
    """A setting and its reason beside it, or below it where the setting is long."""
    flag = f"  {_say(setting)}"
    if len(flag) > column + 2:
        return [flag, *wrapped(setting.because, " " * (column + 4), " " * (column + 4))]
    return wrapped(f"{flag:<{column + 2}}  {setting.because}".lstrip(), "  ", " " * (column + 4))


def _say(setting: Setting) -> str:
    value = setting.value
    if value is True:
        return setting.name
    words = " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    words = HIDDEN if is_secret(setting.name, value) else words
    return f"{setting.name}={words}" if setting.name.startswith("$") else f"{setting.name} {words}"


def evidence_lines(rule: Rule) -> list[str]:
    """Returns a rule's evidence, a line each."""
    return [
        f"{rule.id}: {seen.standing} {seen.date} on {seen.build}: {seen.says or rule.title} [{seen.source}]"
        for seen in rule.evidence
    ]


def findings_lines(findings: Iterable[Finding], rules: dict[str, Rule]) -> list[str]:
    """Returns findings as people read them: what, why, what to do, and the rule; with evidence for the rules given."""
    lines: list[str] = []
    for one in findings:
        head = click.style(f"{WORDS[one.level]:<8}", fg=COLOURS[one.level])
        lines.append(f"{head} {one.what}" + (click.style(f"   {one.where}", dim=True) if one.where else ""))
        for name, text in (("why", one.why), ("fix", one.fix), ("rule", f"{one.rule} ({one.standing})")):
            lines += wrapped(f"{name}: {text}", "         ", "           ")
        if one.rule in rules:
            lines += [f"           {click.style(text, dim=True)}" for text in evidence_lines(rules[one.rule])]
    return lines


def _alternatives(found: tuple[Alternative, ...]) -> list[str]:
    if not found:
        return ["Nobody's figures for this model on such a machine are known."]
    rows = [(one.engine, one.quantisation, one.speculation, one.decode_tok_s or "-", one.note, one.source) for one in found]
    return ["what others measured, one request at a time:", table(
        ("engine", "weights", "speculation", "tok/s", "on", "source"), rows)]  # fmt: skip
