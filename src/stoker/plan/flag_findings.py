"""Finds flags that an engine's version does not know, values it does not take, and flags it is giving up. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stoker.facts.flags import find_flag, find_lifetimes, suggest_flag
from stoker.plan.written.flags import Span, spans_of
from stoker.records import Catalog, Finding, Flag, Lifetime

UNKNOWN, BAD_CHOICE, DEPRECATED = "flag-unknown", "flag-choice", "flag-deprecated"
MOST_CHOICES = 12


def find_wrong_flags(words: Sequence[str], catalog: Catalog, others: Sequence[Catalog], exact: bool) -> list[Finding]:
    """Returns what is wrong with the flags of a command.

    `exact` tells that the catalog is the version's own; else it stands in for it, and what it lacks is only warned of.
    """
    findings: list[Finding] = []
    for span in spans_of(words, catalog):
        word = words[span.start]
        match = find_flag(catalog, word)
        if match is None:
            findings.append(_unknown(word, catalog, others, exact))
        elif match.how != "dotted":
            findings += _of_known(span, match.flag, catalog, exact)
    return findings


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
