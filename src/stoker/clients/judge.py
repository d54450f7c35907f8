"""Holds what a client's file says against the rules; each finding quotes the words and the line that it is about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from stoker.clients.situation import Ground
from stoker.records import ClientFact, Finding, Rule
from stoker.rules.compare import Value, passes
from stoker.rules.load import load_folder
from stoker.rules.match import LEVELS, match_rules

ENGINES = ("llamacpp", "sglang", "vllm")
PARSERS = ("--tool-call-parser", "--reasoning-parser")


def judge(uses: Iterable[tuple[tuple[ClientFact, ...], Mapping[str, Value]]], client: str, file: str) -> tuple[Finding, ...]:
    """Returns the findings on all uses, each with what else is known of it; the worst first, and none twice."""
    found = [finding for facts, more in uses for finding in _judge_one(facts, {"client": client, **more}, file)]
    unique = {(one.rule, one.what, one.where): one for one in found}
    return tuple(sorted(unique.values(), key=lambda one: LEVELS.index(one.level)))


def _judge_one(facts: tuple[ClientFact, ...], more: Mapping[str, Value], file: str) -> Iterator[Finding]:
    rules = {rule.id: rule for rule in _rules(more.get("engine"))}
    for finding in match_rules(rules.values(), Ground(facts, more)):
        told = _told(rules[finding.rule], facts) or (_model_line(facts) if finding.rule in rules else None)
        yield msgspec.structs.replace(
            finding,
            level="warn" if finding.level == "forbid" else finding.level,  # nothing is started here, so nothing is refused
            what=f"{finding.what}: {told.shown}" if told and told.shown else finding.what,
            where=f"{file}:{told.line}" if told and told.line else file,
        )


def _rules(engine: Value) -> Sequence[Rule]:
    """The rules on clients, and those of the engine behind the gateway that ask for a parser."""
    own = load_folder(str(engine)) if engine in ENGINES else ()
    return [*load_folder("client"), *(rule for rule in own if not rule.wrong.keys().isdisjoint(PARSERS))]


def _told(rule: Rule, facts: tuple[ClientFact, ...]) -> ClientFact | None:
    """The fact that makes the rule speak."""
    return next((one for one in facts if one.name in rule.wrong and passes(rule.wrong[one.name], one.value)), None)


def _model_line(facts: tuple[ClientFact, ...]) -> ClientFact | None:
    """Where the file names the model whose engine the rule is about."""
    return next((one for one in facts if one.name == "client_model"), None)
