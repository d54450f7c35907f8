"""Completes a rule's fix with what the line itself names: the flags that were refused, the context that would fit. Pure.

`drop = ["{flags}"]` and `use = { "--max-model-len" = "{tokens}" }` stand for groups of the rule's signs. Of a line only
names of flags and whole numbers are taken, so that nobody who writes into a log chooses a setting's words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from stoker.records import Rule, Scalar

BLANK = re.compile(r"\{(\w+)\}")
FLAG = re.compile(r"(?<![\w-])--[A-Za-z][\w-]{1,60}")


def blanks_of(rule: Rule) -> set[str]:
    """Returns the names of the groups that a rule's fix asks for."""
    asked = (BLANK.fullmatch(one) for one in (*rule.drop, *rule.use.values()) if isinstance(one, str))
    return {found[1] for found in asked if found}


def filled_drop(rule: Rule, found: re.Match[str]) -> tuple[str, ...]:
    """Returns what to leave out, with the flags that a line names."""
    return tuple(dict.fromkeys(_dropped(rule, found.groupdict())))


def _dropped(rule: Rule, said: Mapping[str, str | None]) -> Iterator[str]:
    for name in rule.drop:
        blank = BLANK.fullmatch(name)
        yield from (name,) if blank is None else (flag.replace("_", "-") for flag in FLAG.findall(said.get(blank[1]) or ""))


def filled_use(rule: Rule, found: re.Match[str]) -> dict[str, Scalar]:
    """Returns what to set, with the numbers that a line names; where it names none, the setting is left out."""
    said = found.groupdict()
    use: dict[str, Scalar] = {}
    for name, value in rule.use.items():
        blank = BLANK.fullmatch(value) if isinstance(value, str) else None
        if blank is None:
            use[name] = value
        elif (number := said.get(blank[1]) or "").isdecimal():
            use[name] = int(number)
    return use
