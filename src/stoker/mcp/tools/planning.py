"""How a model would be served, what is wrong with a launch, and what a flag does."""

from __future__ import annotations

import shlex
from typing import Annotated, Any, Literal

import msgspec

from stoker.errors import WrongUse
from stoker.mcp.brief import first, plain, untrusted
from stoker.mcp.desk import Desk
from stoker.mcp.tool import Arguments, Tool
from stoker.records import Budget, Finding, Report, Setting
from stoker.records.spread import SpreadReport

MOST_FINDINGS, MOST_RULES, MOST_SETTINGS = 8, 6, 60
Box = Annotated[
    Literal["this", "gb10", "gb10-64", "h200", "pc"],
    msgspec.Meta(description="The machine: this one, or one whose facts come with Stoker."),
]
Count = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]
EngineName = Annotated[Literal["sglang", "vllm", "llamacpp"], msgspec.Meta(description="The engine.")]


class Lint(Arguments, frozen=True):
    """A launch as somebody would type it."""

    command: Annotated[
        str, msgspec.Meta(description="All of it: docker run ..., vllm serve ..., with its flags.", max_length=20_000)
    ]
    on: Box = "this"


class PlanIt(Arguments, frozen=True):
    """What is to be served, and the few things that are said about how."""

    target: Annotated[
        str | None, msgspec.Meta(description="A service, a model's folder or GGUF, or a hub name; left out: the demo.")
    ] = None
    on: Box = "this"
    engine: EngineName | None = None
    context: Annotated[Count | None, msgspec.Meta(description="Tokens a request may use.")] = None
    parallel: Annotated[Count | None, msgspec.Meta(description="Requests answered at once.")] = None
    speculation: Literal["auto", "off", "ngram", "draft", "eagle", "eagle3", "mtp"] | None = None


class Explain(Arguments, frozen=True):
    """Which flag of which engine."""

    engine: EngineName
    setting: Annotated[str, msgspec.Meta(description="A flag: --attention-backend, or part of one.", max_length=200)]
    version: Annotated[str | None, msgspec.Meta(description="The engine's version; left out: the newest known.")] = None


def lint_command(_desk: Desk, asked: Lint) -> object:
    """Holds a launch against the rules."""
    from stoker.flows.lint import lint_words

    try:
        words = shlex.split(asked.command, comments=True)
    except ValueError as problem:
        raise WrongUse(f"the command cannot be split into words: {problem}", next_step="close its quotes") from problem
    [linted, *_] = lint_words(words, asked.on)
    findings = [finding_view(one) for one in linted.findings]
    return {
        "engine": linted.recipe.engine, "model": linted.recipe.model, "is_clean": not findings,
        **first(findings, MOST_FINDINGS, "findings"), "mended": untrusted_text(linted.mended),
        "not_understood": [untrusted(one) for one in linted.recipe.unknown[:MOST_FINDINGS]],
    }  # fmt: skip


def untrusted_text(text: str | None) -> dict[str, str] | None:
    """Returns a text of many lines that holds words of the caller's."""
    return {"untrusted_text": "\n".join(plain(line, 4000) for line in text.splitlines())} if text else None


def finding_view(finding: Finding) -> dict[str, Any]:
    """Returns a finding; `forbid` is what is measured or reported to fail here."""
    return {
        "level": finding.level, "rule": finding.rule, "what": plain(finding.what), "why": finding.why, "fix": finding.fix,
        "standing": finding.standing, "use": finding.use, "drop": finding.drop,
    }  # fmt: skip


def plan_service(desk: Desk, asked: PlanIt) -> object:
    """Plans, and starts nothing."""
    from stoker.config import read_config
    from stoker.facts.machine.boxes import THIS
    from stoker.flows.planning import find_wish, report_on, with_options
    from stoker.flows.running import read_claims
    from stoker.plan.report import report_without_secrets

    options = {name: getattr(asked, name) for name in ("engine", "context", "parallel", "speculation")}
    wish = with_options(find_wish(asked.target, read_config(desk.paths.config)), options)
    if wish.boxes and asked.on == THIS:
        from stoker.flows.spreading import spread_on, spread_without_secrets

        return spread_view(spread_without_secrets(spread_on(wish)))
    running = read_claims(desk.paths) if asked.on == THIS else ()
    return plan_view(report_without_secrets(report_on(wish, asked.on, running)))


def plan_view(report: Report) -> dict[str, Any]:
    """Returns a plan: its settings with who chose each, its memory, and what is known against it."""
    plan, speed = report.plan, report.speed
    expected = speed.expected if speed else None
    return {
        "service": plan.service, "model": plan.model, "plan_id": plan.plan_id, "engine": plan.engine,
        "engine_version": plan.engine_version, "why_this_engine": report.engine_because, "image": plan.image,
        **first([_setting(one) for one in plan.settings], MOST_SETTINGS, "settings"),
        "memory": _memory(report.budget), "kv_tokens": plan.kv_tokens, "expected_speed": expected,
        **first([finding_view(one) for one in report.findings], MOST_FINDINGS, "findings"),
        "is_forbidden": any(one.level == "forbid" for one in report.findings),
    }  # fmt: skip


def spread_view(report: SpreadReport) -> dict[str, Any]:
    """Returns a plan over several boxes: the ways side by side, the one to take, and what each box is told."""
    ranks = [
        {"rank": one.rank, "box": one.box, "plan_id": one.plan.plan_id, "memory": _memory(one.budget),
         **first([_setting(setting) for setting in one.plan.settings], MOST_SETTINGS, "settings")}
        for one in report.ranks
    ]  # fmt: skip
    return {
        "service": report.service, "boxes": report.boxes, "link": report.link.kind, "why_this_link": report.link.because,
        "ways": report.ways, "chosen": report.chosen, "why_chosen": report.because, "ranks": ranks,
        **first([finding_view(one) for one in report.findings], MOST_FINDINGS, "findings"),
        "is_forbidden": any(one.level == "forbid" for one in report.findings),
    }  # fmt: skip


def _setting(setting: Setting) -> dict[str, Any]:
    return {"name": setting.name, "value": setting.value, "because": setting.because, "rule": setting.rule}


def _memory(budget: Budget | None) -> dict[str, Any] | None:
    if budget is None:
        return None
    return {
        "need_bytes": budget.total_bytes, "usable_bytes": budget.usable_bytes, "available_bytes": budget.available_bytes,
        "fits_machine": budget.fits_machine, "fits_now": budget.fits_now, "unknown": budget.unknown,
    }  # fmt: skip


def explain_setting(_desk: Desk, asked: Explain) -> object:
    """Says what a flag is in a version, and what the rules know of it."""
    from stoker.flows.flags import choose_catalog, show_flags
    from stoker.rules.load import load_rules

    view = show_flags(*choose_catalog(asked.engine, asked.version), asked.setting)
    rules = [one for one in load_rules(asked.engine) if any(asked.setting.lower() in name for name in _names(one))]
    told = [{"rule": one.id, "title": one.title, "cause": one.cause, "fix": one.fix} for one in rules]
    return {
        "engine": view.engine, "version": view.version, "note": view.note, **first(view.flags, MOST_RULES, "flags"),
        **first(told, MOST_RULES, "rules"), "is_known": bool(view.flags),
    }  # fmt: skip


def _names(rule: Any) -> list[str]:
    return [name.lower() for name in (*rule.when, *rule.wrong, *rule.use, *rule.prefer, *rule.drop)]


TOOLS = (
    Tool(
        "lint_command", "What is wrong with a launch",
        "Holds a command that starts an engine against what is known of this machine, engine version and model. Nothing is "
        "run. `forbid`: known to fail here. `mended` is the command as it should be.", Lint, lint_command,
    ),
    Tool(
        "plan_service", "How a model would be served",
        "Plans a service: every flag with its reason, the memory it takes, whether it fits, what is known against it, the "
        "speed to expect. Nothing is started.", PlanIt, plan_service,
    ),
    Tool(
        "explain_setting", "What a flag does",
        "What a flag of SGLang, vLLM or llama.cpp is in an exact version (type, choices, default, since and until when), "
        "and what the rules know of it. Ask before you propose a flag.", Explain, explain_setting,
    ),
)  # fmt: skip
