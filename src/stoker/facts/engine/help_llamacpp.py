"""Reads what `llama-server --help` prints: its own layout, with defaults, choices and opposites in it."""

from __future__ import annotations

import re

from stoker.facts.engine.help_argparse import (
    Default,
    choose_name,
    find_opposites,
    join_lines,
    read_default,
    read_deprecation,
)
from stoker.records import Flag, FlagType

# Options begin at the margin, their text two blanks after them or, where they are long, on the next line.
OPTION = re.compile(r"--?[a-zA-Z].*")
WORD = re.compile(r"--?[a-zA-Z][\w.-]*")
# A default is a number, or quoted, or one bare word; several bare words are a sentence about it or a list.
DEFAULT = re.compile(r"default: (?:([\"'])(.*?)\1|(-?\d+(?:\.\d+)?)(?![\w.])|([^-,()\s][^,()\s]*)(?=\)))")
TRUTH = re.compile(r"default: (?:\w+ )?(enabled|true|disabled|false)\b")
LISTED = re.compile(r"[{<\[](\w[\w-]*(?:[|,][\w-]+)+)[}>\]]|([a-z][a-z\d-]*(?:,[a-z][a-z\d-]*){2,})")
ALLOWED = re.compile(r"allowed values: ((?:[\w-]+, )*[\w-]+)")
REMOVED = re.compile(r"the argument has been removed\.(?: use (--[\w-]+))?")
NO_DEFAULTS = frozenset({"unused", "none", "empty", "disabled", "unset"})


def parse_llamacpp_help(printed: str) -> tuple[Flag, ...]:
    """Returns the options that the help text names; one that takes a number without a default is of an unknown type."""
    found = (_read_flag(words, values, told) for words, values, told in _entries(printed) if not REMOVED.match(told))
    flags = {flag.name: flag for flag in found}
    return tuple(flags[name] for name in sorted(flags))


def parse_llamacpp_removed(printed: str) -> dict[str, str]:
    """Returns the words that are only there to be refused, each with the flag that the text names instead."""
    found = ((words, REMOVED.match(told)) for words, _, told in _entries(printed))
    return {word: removed[1] or "" for words, removed in found if removed for word in words}


def _entries(printed: str) -> list[tuple[list[str], str, str]]:
    """Returns each option's words, what may follow them, and the text about it."""
    entries: list[tuple[str, list[str]]] = []
    for line in printed.expandtabs().splitlines():
        if OPTION.match(line):
            head, _, told = re.sub(r",\s+(?=-)", ", ", line).partition("  ")
            entries.append((head.strip(), [told.strip()]))
        elif entries and line.startswith(" "):
            entries[-1][1].append(line.strip())
    split = ((head.split(", "), join_lines(told)) for head, told in entries)
    read = (([part.partition(" ")[0] for part in parts], parts[-1].partition(" ")[2], told) for parts, told in split)
    return [(words, values.strip(), told) for words, values, told in read if all(map(WORD.fullmatch, words))]


def _read_flag(words: list[str], values: str, told: str) -> Flag:
    negated = _opposites(words)
    meant = [word for word in words if word not in negated]
    name = choose_name(meant)
    default = _default(values, told)
    choices = _choices(values, told)
    return Flag(
        name=name,
        type=_type(values, default, choices),
        aliases=tuple(sorted(word for word in meant if word != name)),
        choices=choices,
        default=default,
        many=re.fullmatch(r"\w+ \w+", values) is not None,
        deprecated=read_deprecation(told) or ("deprecated" if "(DEPRECATED)" in told else ""),
        negated=tuple(sorted(negated)),
    )


def _opposites(words: list[str]) -> list[str]:
    """Returns the words that switch off; they come last, the short ones (`-nkvo`, `-no-ag`) before the long ones."""
    long = find_opposites([word for word in words if word.startswith("--")])
    if not long:
        return []
    first_meant = next(at for at, word in enumerate(words) if word.startswith("--"))
    return [word for word in words[first_meant + 1 :] if word in long or not word.startswith("--")]


def _default(values: str, told: str) -> Default:
    if not values:
        found = TRUTH.search(told)
        return found[1] in ("enabled", "true") if found else None
    found = DEFAULT.search(told)
    text = (found[2] or found[3] or found[4] or "") if found else ""
    return None if text in NO_DEFAULTS else read_default(text)


def _type(values: str, default: Default, choices: tuple[str, ...]) -> FlagType:
    if not values:
        return "switch"
    if choices or not re.fullmatch(r"\w+", values):
        return "text"
    if default is None:
        return "unknown" if values == "N" else "text"
    return "text" if isinstance(default, str) else "float" if isinstance(default, float) else "int"


def _choices(values: str, told: str) -> tuple[str, ...]:
    if found := LISTED.fullmatch(values):
        return tuple(re.split(r"[|,]", found[1] or found[2]))
    allowed = ALLOWED.search(told)
    return tuple(allowed[1].split(", ")) if allowed else ()
