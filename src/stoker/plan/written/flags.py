"""Turns the words of an engine into flags with their values, as the engine's own parser would."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from stoker.records import Catalog, Flag

NUMBER = re.compile(r"-(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")
# Words that nobody resolved and that may stand for several or none.
PASSED_ON = re.compile(r"\$[@*]|\$\{[@*]\}|\$\{\w+\[[@*]\].*\}", re.DOTALL)
MOST_DEPTH = 4
# No flags' names: they stand among the known ones where the parser takes a prefix that only one flag has, or `-O3`.
PREFIXES, ATTACHED = "", "-"


class Span(NamedTuple):
    """A flag with its values: words `start` to `end`. `inline` tells that the first value is in the flag's own word.

    Where it is, an equals sign parts them, or nothing does: `-O3`.
    """

    name: str
    values: tuple[str, ...]
    start: int
    end: int
    inline: bool = False


def flags_of(words: Sequence[str], catalog: Catalog | None = None) -> dict[str, tuple[str, ...]]:
    """Returns each flag by its long name with its values, none for a switch; of a flag given twice the last counts.

    A JSON object's keys are there as well, `--speculative-config.method`, and so is the object where only its keys were
    given. Without a catalog a short flag keeps its name, and all words up to the next flag are values. With one a flag is
    there by each of its long names: a rule says `--gpu-memory-utilization` however a later version prefers to call it.
    """
    found: dict[str, tuple[str, ...]] = {}
    names = {flag.name: flag.aliases for flag in catalog.flags} if catalog else {}
    for span in spans_of(words, catalog):
        found[span.name] = span.values
        found |= dict.fromkeys((name for name in names.get(span.name, ()) if name.startswith("--")), span.values)
    dotted = {name: values for name, values in found.items() if "." in name}
    for name, values in list(found.items()):
        if len(values) == 1 and values[0].lstrip().startswith("{"):
            found |= {f"{name}.{key}": entry for key, entry in _entries(values[0])}
    return _objects(dotted) | found | dotted


def spans_of(words: Sequence[str], catalog: Catalog | None = None) -> list[Span]:
    """Returns the flags in their order and where they stand."""
    known = _known(catalog)
    found: list[Span] = []
    place = 0
    while place < len(words):
        if not is_flag(words[place]):
            place += 1
            continue
        span = _span(words, place, known)
        found.append(span)
        place = span.end
    return found


def is_flag(word: str) -> bool:
    """Tells whether a word is a flag, and not a value such as -1."""
    return len(word) > 1 and word.startswith("-") and word != "--" and not NUMBER.fullmatch(word) and word[1] not in " {["


def _known(catalog: Catalog | None) -> Mapping[str, tuple[str, Flag]]:
    """Returns for each way of writing a flag its long name; a negated one, `--no-x`, keeps its own."""
    known: dict[str, tuple[str, Flag]] = {}
    if catalog and "prefixes" in catalog.spellings:
        known[PREFIXES] = (PREFIXES, Flag(PREFIXES))
    if catalog and "equals" in catalog.spellings:  # whoever takes the one takes the other
        known[ATTACHED] = (ATTACHED, Flag(ATTACHED, type="switch"))
    for flag in catalog.flags if catalog else ():
        known |= dict.fromkeys(flag.aliases, (flag.name, flag))
        known |= {negated: (negated, flag) for negated in flag.negated}
        known[flag.name] = (flag.name, flag)
    return known


def _span(words: Sequence[str], start: int, known: Mapping[str, tuple[str, Flag]]) -> Span:
    written, sign, value = words[start].partition("=")
    name, flag = long_name(written, known)
    if sign:
        return Span(name, (value,), start, start + 1, inline=True)
    if flag is None and (attached := _attached(written, known)):
        return Span(attached, (written[len("-O") :],), start, start + 1, inline=True)
    most = len(words) if flag is None or flag.many else 0 if _is_switch(name, flag) else 1
    end = start + 1
    while end < len(words) and end - start <= most and not is_flag(words[end]) and not PASSED_ON.fullmatch(words[end]):
        end += 1
    return Span(name, tuple(words[start + 1 : end]), start, end)


def _attached(written: str, known: Mapping[str, tuple[str, Flag]]) -> str | None:
    """Returns the long name of a flag of one letter whose value follows without a blank."""
    if ATTACHED not in known or written.startswith("--") or len(written) <= len("-O") or "." in written:
        return None
    name, flag = known.get(written[: len("-O")], ("", None))
    return name if flag is not None and not _is_switch(name, flag) else None


def _is_switch(name: str, flag: Flag) -> bool:
    return flag.type == "switch" or name in flag.negated


def long_name(written: str, known: Mapping[str, tuple[str, Flag]]) -> tuple[str, Flag | None]:
    """Returns the long name of a flag: dashes for underscores, the alias or the only match of a prefix; dotted keys stay."""
    if written in known:
        return known[written]
    head, dot, keys = written.partition(".")
    dashed = head.replace("_", "-")
    if dashed not in known and known.get(PREFIXES) and dashed.startswith("--") and not dot:
        matches = {long for alias, (long, _) in known.items() if alias.startswith(dashed)}
        dashed = matches.pop() if len(matches) == 1 else dashed
    name, flag = known.get(dashed, (dashed, None))
    return (name + dot + keys, None) if dot else (name, flag)


def _entries(text: str) -> list[tuple[str, tuple[str, ...]]]:
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):  # somebody's text, or a trap
        return []
    return list(_flat(tree, "", MOST_DEPTH)) if isinstance(tree, dict) else []


def _flat(tree: Mapping[str, object], before: str, depth: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{key}.", depth - 1) if depth else ()
        elif isinstance(value, list):
            yield f"{before}{key}", tuple(_text(item) for item in value if not isinstance(item, dict | list))
        else:
            yield f"{before}{key}", (_text(value),)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _objects(dotted: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Returns the objects that are given key by key, as one JSON text each."""
    objects: dict[str, dict[str, object]] = {}
    for name, values in dotted.items():
        flag, _, key = name.partition(".")
        objects.setdefault(flag, {})[key] = values[0] if len(values) == 1 else list(values)
    return {flag: (json.dumps(keys, separators=(",", ":")),) for flag, keys in objects.items()}
