"""Reads what `--help` of a Python engine prints: argparse's layout, in which vLLM and SGLang both speak."""

from __future__ import annotations

import ast
import json
import re

from stoker.records import Flag

Default = str | int | float | bool | None

# An option stands two columns in; its text is aligned far to the right, or starts two blanks after it.
OPTION = re.compile(r"  (-[^\s,].*)")
WORD = re.compile(r"--?[a-zA-Z][\w.-]*")
CHOICES = re.compile(r"\[?\{([^{}]+)\}(?! or )")
NAMED = re.compile(r"\{([^{}]+)\} or ")
DEPRECATED = re.compile(r"(?:note: )?\W*(?:\S+ is )?deprecated\b", re.IGNORECASE)
INSTEAD = re.compile(
    r"(?:\buse:?|\balias (?:for|of)|\brenamed to|\bfavou?r of) `?(--\w[\w-]*(?:\{[\w,]+\})?(?:=\w+)?)", re.IGNORECASE
)
OPPOSITES = (("--enable-", "--disable-"), ("--disable-", "--enable-"))


def parse_argparse_help(printed: str) -> tuple[Flag, ...]:
    """Returns the options that a help text names.

    It tells names and choices for certain, defaults where the engine prints them, and no types: a flag that takes a value
    is of an unknown type.
    """
    flags = {flag.name: flag for words, values, told in _entries(printed) for flag in [_read_flag(words, values, told)]}
    return tuple(flags[name] for name in sorted(flags))


def _entries(printed: str) -> list[tuple[list[str], str, str]]:
    """Returns each option's words, what may follow them, and the text about it."""
    entries: list[tuple[str, list[str]]] = []
    for line in printed.expandtabs().splitlines():
        if found := OPTION.fullmatch(line):
            head, _, told = found[1].partition("  ")
            entries.append((head.strip(), [told.strip()]))
        elif entries and line.startswith("    "):
            entries[-1][1].append(line.strip())
    read = ((*_split_head(head), join_lines(told)) for head, told in entries)
    return [(words, values, told) for words, values, told in read if all(map(WORD.fullmatch, words))]


def _split_head(head: str) -> tuple[list[str], str]:
    """Splits '-tp N, --tensor-parallel-size N' (up to Python 3.12) or '-tp, --tensor-parallel-size N'."""
    parts = [part.partition(" ") for part in re.split(r", (?=-)", head)]
    return [word for word, _, _ in parts], parts[-1][2].strip()


def join_lines(lines: list[str]) -> str:
    """Returns the lines as one; a word that was broken at its hyphen becomes whole again."""
    return re.sub(r"(?<=\w-) (?=\w)", "", " ".join(filter(None, lines)))


def _read_flag(words: list[str], values: str, told: str) -> Flag:
    negated = find_opposites([word for word in words if word.startswith("--")])
    meant = [word for word in words if word not in negated]
    name = choose_name(meant)
    choices, named = CHOICES.match(values), NAMED.match(values)
    listed = values.startswith("['")  # vLLM: values that it knows, of an option that takes others too
    if any(word.startswith(there) for word in negated for _, there in OPPOSITES):
        negated.append(name.replace("--", "--no-", 1))  # vLLM takes it still, but shows only the pair
    return Flag(
        name=name,
        type="unknown" if values else "switch",
        aliases=tuple(sorted(word for word in meant if word != name)),
        choices=tuple(choices[1].split(",")) if choices else (),
        default=_default(told),
        many="..." in values,
        deprecated=read_deprecation(told),
        negated=tuple(sorted(negated)),
        optional=values.startswith("[") and not listed,
        named=tuple(sorted(named[1].split(","))) if named else tuple(re.findall(r"'([^']*)'", values)) if listed else (),
    )


def choose_name(words: list[str]) -> str:
    """Returns the word that a flag is called by: the longest, since engines shuffle their order between versions."""
    return max(words, key=lambda word: (word.startswith("--"), len(word)))


def find_opposites(long: list[str]) -> list[str]:
    """Returns the words that switch off what the first of them switches on."""
    first = long[0] if long else ""
    inverse = {there + first.removeprefix(here) for here, there in OPPOSITES if first.startswith(here)}
    return [word for word in long[1:] if word in inverse or (word.startswith("--no-") and not first.startswith("--no-"))]


def _default(told: str) -> Default:
    _, marked, last = told.rpartition("(default: ")
    if not marked:
        return None
    return read_default(last.removesuffix(")") if last.endswith(")") else last.partition(")")[0])


def read_default(text: str) -> Default:
    """Returns a default as a value; lists and objects as JSON, and None for what Python shows in its own words."""
    text = text.strip().strip("`")
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        in_pythons_words = re.search(r"[(){}\[\]<>]", text) or re.fullmatch(r"[A-Z]\w*\.[A-Z_\d]+", text)
        return None if in_pythons_words or not text or " " in text else text  # several words are a sentence about it
    if value is None or isinstance(value, str | int | float):
        return value
    try:
        return json.dumps(value)
    except (TypeError, ValueError):
        return None


def read_deprecation(told: str) -> str:
    """Returns 'use --other', or 'deprecated' where no other is named; empty for a flag that is in use."""
    if not DEPRECATED.match(told.lstrip(" [(*")):
        return ""
    instead = INSTEAD.search(told)
    return f"use {instead[1]}" if instead else "deprecated"
