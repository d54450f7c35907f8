"""Holds what was heard in a log against the rules: which of them explain it, how sure that is, and which is the cause. Pure.

A rule is a finding where its sign was found and nothing in its scope is known to be otherwise. It is certain where all
of its scope and its mistake are known, likely where one fact of them is not, and possible where more are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from stoker.diagnose.heard import Start
from stoker.diagnose.redact import hide_secrets
from stoker.diagnose.scan import Hit
from stoker.records import Cause, Confidence, LogLine, Noise, Rule, Test
from stoker.rules.compare import Situation, holds, is_given_name
from stoker.rules.filled import filled_drop, filled_use
from stoker.rules.match import FORBIDDING, standing_of

CONTEXT = 140  # characters that are shown on either side of a sign
MOST_UNKNOWN = 8
WARNINGS, ALL = 3, 10  # the rank among signs of faults from which on they may be warnings
BOTH = 2
ENDING = frozenset({"crash", "oom"})


class Suspect(NamedTuple):
    """A rule whose sign was found in a scope that may be its own."""

    rule: Rule
    hits: Sequence[Hit]
    unknown: tuple[str, ...]
    confidence: Confidence
    was_survived: bool = False


def find_suspects(start: Start, rules: Iterable[Rule], situation: Situation, launch_known: bool) -> list[Suspect]:
    """Returns the rules that explain something of a start, each cause before what follows from it."""
    known = {rule.id: rule for rule in rules}
    found = [_suspect(known[name], hits, situation, launch_known) for name, hits in start.rules.items()]
    told = [_survived(one) if start.was_survived(one.rule.id) else one for one in found if one is not None]
    return sorted(_without_rivals(told), key=_rank)


def _survived(suspect: Suspect) -> Suspect:
    """What would have ended the engine cannot have been there, or not so, where it became ready afterwards."""
    if suspect.rule.severity not in ENDING:
        return suspect
    return suspect._replace(confidence="possible", was_survived=True)


def _suspect(rule: Rule, hits: Sequence[Hit], situation: Situation, launch_known: bool) -> Suspect | None:
    tests = {**rule.when, **rule.wrong}
    answers = {name: _decide(name, test, situation, launch_known, hits) for name, test in _all_tests(rule)}
    if False in answers.values():
        return None
    unknown = tuple(name for name in tests if answers[name] is None)
    return Suspect(rule, hits, unknown, _confidence(rule, unknown))


def _all_tests(rule: Rule) -> Iterable[tuple[str, Test]]:
    """A name may be in both scope and mistake; what one of them denies is denied."""
    return [*rule.when.items(), *((name, test) for name, test in rule.wrong.items() if name not in rule.when)]


def _decide(name: str, test: Test, situation: Situation, launch_known: bool, hits: Sequence[Hit]) -> bool | None:
    """What a line itself names was there, whatever else is known of the launch."""
    if is_given_name(name) and test in ("set", True) and any(name.lstrip("$") in hit.text for hit in hits):
        return True
    if is_given_name(name) and name not in situation and not (launch_known and name.startswith("--")):
        return None
    return holds(name, test, situation)


def _confidence(rule: Rule, unknown: Sequence[str]) -> Confidence:
    if rule.is_disputed or rule.is_consequence or len(unknown) >= BOTH:
        return "possible"
    return "likely" if unknown else "certain"


def _without_rivals(suspects: Sequence[Suspect]) -> list[Suspect]:
    """Of rules that the same line speaks for the narrowest that certainly holds is the cause; the others fall back."""
    kept = []
    for one in suspects:
        rivals = [other for other in suspects if other is not one and _share_line(one, other)]
        if any(other.rule.local and other.confidence != "possible" for other in rivals) and not one.rule.local:
            kept.append(one._replace(confidence="possible"))  # the user's own rule wins
            continue
        if any(_beats(other, one) for other in rivals):
            if one.confidence == "certain" and not one.unknown:
                continue  # it says the same of the same line, and less of it
            one = one._replace(confidence="possible")
        kept.append(one)
    return kept


def _share_line(one: Suspect, other: Suspect) -> bool:
    return not {hit.line for hit in one.hits}.isdisjoint(hit.line for hit in other.hits)


def _beats(one: Suspect, other: Suspect) -> bool:
    if (
        one.rule.local
        or one.confidence == "possible"
        or (one.rule.severity in FORBIDDING) < (other.rule.severity in FORBIDDING)
    ):
        return False
    return (len(other.unknown), -_width(other)) > (len(one.unknown), -_width(one))


def _width(suspect: Suspect) -> int:
    """How many tests a rule makes: the more, the more it knows of the very case."""
    return len(suspect.rule.when) + len(suspect.rule.wrong)


def _rank(suspect: Suspect) -> tuple[bool, bool, bool, int, int, int, str]:
    """What ends an engine comes first, then what is sure; of those the first in the log is the cause of the others."""
    rule = suspect.rule
    first = min(hit.line for hit in suspect.hits)
    ends = rule.severity in FORBIDDING and not suspect.was_survived
    return (
        not ends, suspect.confidence == "possible", rule.is_consequence, first, len(suspect.unknown),
        -_width(suspect), rule.id,
    )  # fmt: skip


def tell_causes(suspects: Iterable[Suspect], times: Mapping[str, int]) -> tuple[Cause, ...]:
    """Returns the findings among the suspects, in their order."""
    return tuple(_tell(one, times[one.rule.id]) for one in suspects if one.rule.severity != "harmless")


def _tell(suspect: Suspect, times: int) -> Cause:
    rule = suspect.rule
    return Cause(
        rule=rule.id,
        title=rule.title,
        confidence=suspect.confidence,
        cause=rule.cause,
        fix=rule.fix,
        evidence=tuple(map(tell_line, suspect.hits)),
        sources=tuple(dict.fromkeys(seen.source for seen in rule.evidence)),
        standing=standing_of(rule),
        severity=rule.severity,
        times=times,
        hangs_on=tuple(f"{name} {say_test({**rule.wrong, **rule.when}[name])}" for name in suspect.unknown),
        use=filled_use(rule, suspect.hits[0].found),
        drop=filled_drop(rule, suspect.hits[0].found),
        local=rule.local,
        contradicts=rule.contradicts,
    )


def say_test(test: Test) -> str:
    """Returns what a test asks for, as people read it."""
    return " or ".join(map(str, test)) if isinstance(test, tuple) else str(test)


def tell_noise(suspects: Iterable[Suspect]) -> tuple[Noise, ...]:
    """Returns what among the suspects looks like a fault and is none."""
    return tuple(
        Noise(one.rule.id, one.rule.title, one.rule.cause, tuple(map(tell_line, one.hits)))
        for one in suspects
        if one.rule.severity == "harmless"
    )


def tell_unknown(start: Start, suspects: Sequence[Suspect]) -> tuple[LogLine, ...]:
    """Returns the most telling lines that no rule explains, in the order of the log."""
    explained = {hit.line for one in suspects if one.confidence != "possible" for hit in one.hits}
    heard = [hit for hit in (*start.first_faults, *start.last_faults) if hit.line not in explained]
    worst = sorted(heard, key=lambda hit: (-int(hit.sign.name), -hit.line))
    by_text = {_said(hit): hit for hit in {hit.line: hit for hit in worst}.values()}
    limit = WARNINGS if start.ready_line is not None else ALL  # one that became ready only grumbled before that
    telling = sorted((hit for hit in by_text.values() if int(hit.sign.name) < limit), key=_how_telling)
    return tuple(tell_line(hit) for hit in sorted(telling[:MOST_UNKNOWN], key=lambda hit: hit.line))


def _how_telling(hit: Hit) -> tuple[int, int]:
    return int(hit.sign.name), hit.line


def _said(hit: Hit) -> str:
    """Several ranks say the same: what stands before a sign, and all numbers, tell only who said it and when."""
    return "".join(letter for letter in hit.text[hit.found.start() :] if not letter.isdigit())


def tell_line(hit: Hit) -> LogLine:
    """Returns the part of a line that is around its sign, without secrets and control characters."""
    begin, end = max(0, hit.found.start() - CONTEXT), hit.found.end() + CONTEXT
    text = hide_secrets(hit.text)  # before it is cut, so that no secret is cut in two and then passes for none
    if text != hit.text or end - begin >= len(text):
        begin, end = max(0, min(begin, len(text) - 2 * CONTEXT)), min(end, len(text))
    cut = ("…" if begin else "") + text[begin:end] + ("…" if end < len(text) else "")
    return LogLine(hit.line, _printable(cut))


def show_line(text: str) -> str:
    """Returns the beginning of a line in which there is no sign, as one with a sign is shown."""
    text = hide_secrets(text)
    return _printable(text[: 2 * CONTEXT] + ("…" if len(text) > 2 * CONTEXT else ""))


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text).strip()
