"""Finds flags that an engine's version does not know, values it does not take, and flags it is giving up. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from stoker.facts.engine.flags import find_flag, find_lifetimes, suggest_flag
from stoker.plan.written.flags import Span, spans_of
from stoker.records import Catalog, Finding, Flag, Lifetime

UNKNOWN, BAD_CHOICE, DEPRECATED, MALFORMED = "flag-unknown", "flag-choice", "flag-deprecated", "flag-malformed"
MOST_CHOICES = 12
NAME = re.compile(r"--?[A-Za-z0-9][A-Za-z0-9_.+-]*")
OPEN = re.compile(r"[$`]|\{\{")  # what a shell or a template puts in later
# What blogs and word processors make of one or two hyphens.
LONG_DASH = re.compile("[\u2010-\u2015\u2212]-?(?=[A-Za-z])")


def find_wrong_flags(words: Sequence[str], catalog: Catalog | None, others: Sequence[Catalog], exact: bool) -> list[Finding]:
    """Returns what is wrong with the flags of a command.

    `exact` tells that the catalog is the version's own; else it stands in for it, and what it lacks is only warned of.
    Without one, for a command whose version is unknown, only flags are told that none of the versions in `others` has.
    """
    newest = catalog or (others[-1] if others else None)
    if newest is None:
        return []
    findings: list[Finding] = []
    spans = spans_of(words, newest)
    for span in spans:
        word = words[span.start]
        match = find_flag(newest, word)
        if OPEN.search(word.partition("=")[0]):
            continue
        if not NAME.fullmatch(word.partition("=")[0]):
            findings.append(_malformed(word, newest, exact))
        elif match is None and (catalog or not any(find_flag(other, word) for other in others)):
            findings.append(_unknown(word, newest, others, exact) if catalog else _unheard(word, newest, others))
        elif match is not None and match.how != "dotted" and catalog:
            findings += _of_known(span, match.flag, catalog, exact)
    taken = {place for span in spans for place in range(span.start, span.end)}
    alone = [place for place in range(len(words)) if place not in taken]
    return findings + [_malformed(words[place], newest, exact) for place in alone if _is_astray(words, place)]


def _is_astray(words: Sequence[str], place: int) -> bool:
    """Tells whether a word that is no flag to the parser was meant as one, or makes what follows none."""
    ends_flags = words[place] == "--" and any(word.startswith("-") for word in words[place + 1 :])
    return ends_flags or LONG_DASH.match(words[place]) is not None


def _malformed(word: str, catalog: Catalog, exact: bool) -> Finding:
    name = word.partition("=")[0]
    dashed = LONG_DASH.sub("--", name)
    if word == "--":
        why, fix = "what follows `--` is no flag to the parser, whatever it begins with", "leave it out"
    elif dashed != name:
        why, fix = "its dash is not the one of the keyboard, so the parser takes it for a value", f"write {dashed}"
    elif any(letter.isspace() for letter in name):
        why, fix = "it holds a blank", "write the flag and its value as two words, without quotes around both"
    else:
        why, fix = "flags are written with the letters a to z, digits and dashes", "write it with these, or leave it out"
    return Finding(
        level="forbid" if exact else "warn",
        rule=MALFORMED,
        what=f"`{name[:80]}` is no flag's name",
        why=f"{why}, and {catalog.engine} ends its start over words it does not expect",
        fix=fix,
        standing="measured",
    )


def _unheard(word: str, newest: Catalog, others: Sequence[Catalog]) -> Finding:
    name = word.partition("=")[0]
    suggestion = suggest_flag(newest, word, others)
    versions = f"{others[0].version} to {newest.version}" if len(others) > 1 else newest.version
    return Finding(
        level="warn",
        rule=UNKNOWN,
        what=f"no version of {newest.engine} whose flags are known has {name}",
        why=f"it ends its start over an unknown flag; which version it is, is unknown, and {versions} were looked at",
        fix=f"write {suggestion.word}: {suggestion.because}" if suggestion else "leave it out",
        standing="measured",
    )


def _unknown(word: str, catalog: Catalog, others: Sequence[Catalog], exact: bool) -> Finding:
    name = word.partition("=")[0]
    suggestion = suggest_flag(catalog, word, others)
    fix = f"write {suggestion.word}: {suggestion.because}" if suggestion else "leave it out"
    lifetime = find_lifetimes(others).get(name.replace("_", "-"))
    return Finding(
        level="forbid" if exact else "warn",
        rule=UNKNOWN,
        what=f"{catalog.engine} {catalog.version} does not know {name}",
        why=f"it ends its start over an unknown flag; {_say_lifetime(lifetime, catalog.engine)}",
        fix=fix,
        standing="measured",
        drop=(name,) if suggestion is None else (),
    )


def _say_lifetime(lifetime: Lifetime | None, engine: str) -> str:
    if lifetime is None:
        return f"no version of {engine} whose flags are shipped has it"
    if lifetime.until:
        return f"the last version known to have it is {lifetime.until}"
    return f"the first version known to have it is {lifetime.since}" if lifetime.since else "other versions have it"


def _of_known(span: Span, flag: Flag, catalog: Catalog, exact: bool) -> Iterator[Finding]:
    bad = [value for value in span.values if flag.choices and value not in flag.choices and "$" not in value]
    if bad and not flag.many:
        listed = ", ".join(flag.choices[:MOST_CHOICES]) + (" ..." if len(flag.choices) > MOST_CHOICES else "")
        yield Finding(
            level="forbid" if exact else "warn",
            rule=BAD_CHOICE,
            what=f"{flag.name} does not take {bad[0]!r} in {catalog.engine} {catalog.version}",
            why="it ends its start over a value it does not know",
            fix=f"choose one of: {listed}",
            standing="measured",
        )
    if flag.deprecated:
        yield Finding(
            level="note",
            rule=DEPRECATED,
            what=f"{flag.name} is on its way out in {catalog.engine} {catalog.version}",
            why=f"the engine says: {flag.deprecated}",
            fix="write what it names instead before the next update",
            standing="measured",
            severity="harmless",
        )
