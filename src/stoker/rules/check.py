"""Checks a rule as those that ship are checked: names that exist, signs that say something, evidence that is dated."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping

from stoker.records import Rule
from stoker.rules import FACTS
from stoker.rules.compare import is_given_name
from stoker.rules.filled import blanks_of

OLDEST = datetime.date(2024, 1, 1)
LEAST_TEXT = 9


def find_problems(rule: Rule, known: Mapping[str, Rule], today: datetime.date) -> list[str]:
    """Returns what is wrong with a rule, in words; none where it is as it should be."""
    return [*_of_texts(rule), *_of_tests(rule), *_of_signs(rule), *_of_evidence(rule, today), *_of_links(rule, known)]


def _of_texts(rule: Rule) -> Iterator[str]:
    for name in ("title", "cause", "fix"):
        text = getattr(rule, name)
        if len(text) < LEAST_TEXT or text != text.strip():
            yield f"`{name}` is no sentence: {text!r}"
    if not (rule.wrong or rule.signs or rule.prefer) and rule.severity != "harmless":
        yield "it has neither `wrong` nor `signs` nor `prefer`, so that nothing can ever find it"


def _of_tests(rule: Rule) -> Iterator[str]:
    for name in (*rule.when, *rule.wrong):
        if not is_given_name(name) and name not in FACTS:
            yield f"it asks for `{name}`, which nobody tells"


def _of_signs(rule: Rule) -> Iterator[str]:
    for sign in rule.signs:
        try:
            if re.compile(sign).search(""):
                yield f"the sign {sign!r} is found in every line"
        except re.error as problem:
            yield f"the sign {sign!r} is no pattern: {problem}"
            return
    named = {name for sign in rule.signs for name in re.compile(sign).groupindex}
    yield from (f"its fix asks for `{{{name}}}`, which no sign names" for name in blanks_of(rule) - named)


def _of_evidence(rule: Rule, today: datetime.date) -> Iterator[str]:
    if rule.review_by <= today:
        yield f"it was to be looked at again by {rule.review_by}"
    for seen in rule.evidence:
        if not OLDEST < seen.date <= today:
            yield f"evidence of {seen.date} is of no time at which it can have been seen"
        if not (seen.source.startswith("https://") or " " in seen.source):
            yield f"the source {seen.source!r} is neither an address nor a sentence"
        if not seen.build.strip():
            yield "evidence names no build"


def _of_links(rule: Rule, known: Mapping[str, Rule]) -> Iterator[str]:
    """Of ours both sides know of each other; ours cannot know of a rule of the user's."""
    for other in rule.contradicts:
        if other not in known:
            yield f"it contradicts {other}, which does not exist"
        elif not rule.local and rule.id not in known[other].contradicts:
            yield f"{other} does not know that {rule.id} says otherwise"
