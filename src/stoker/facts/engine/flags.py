"""Which flag a word means, which one was meant by a word that is none, and since when there is one. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

import msgspec

from stoker.facts.engine.flag_changes import replacements
from stoker.records import Catalog, Flag
from stoker.records.flags import FlagMatch, HowFound, Lifetime, Suggestion

# A slip of the pen in --tensor-paralel-size leaves 0.97 and in --modle-len 0.7; --enable-flashinfer-mla is 0.66 like
# --enable-linker-mla-dedup, so below SAME half of the words that tell something have to be shared.
ALIKE, SAME = 0.6, 0.85
SAME_WORD, HALF = 0.75, 0.5
CANDIDATES = 12
OPPOSITE = ("--no-", "--disable-")  # is never meant by a word that is none
GENERIC = frozenset({"enable", "disable", "no", "use", "max", "num", "min", "the"})


def find_flag(catalog: Catalog, word: str) -> FlagMatch | None:
    """Returns the flag that a word of the command line means to this engine's parser, or None.

    What it takes besides the exact words differs by engine, and the catalog says so.
    """
    text, equals, value = word.partition("=")
    if equals and "equals" not in catalog.spellings:
        return None
    text, dot, key = text.partition(".") if "dotted" in catalog.spellings else (text, "", "")  # `-cc.mode` as well
    found = _find_whole(catalog, text)
    if found is None:
        return None if equals or dot else _find_attached(catalog, text)
    flag, how = found
    if dot:
        return FlagMatch(flag, "dotted", value if equals else None, key) if flag.type in ("json", "text") else None
    return FlagMatch(flag, how, value if equals else None)


def _find_whole(catalog: Catalog, word: str) -> tuple[Flag, HowFound] | None:
    if found := _find_exact(catalog, word):
        return found
    if word.startswith("--") and "_" in word and "underscores" in catalog.spellings:
        dashed = _find_exact(catalog, word.replace("_", "-"))
        return (dashed[0], "negated" if dashed[1] == "negated" else "underscores") if dashed else None
    if word.startswith("--") and len(word) > len("--") and "prefixes" in catalog.spellings:
        flags = {id(flag): flag for flag in catalog.flags for one in words_of(flag) if one.startswith(word)}
        return (next(iter(flags.values())), "prefix") if len(flags) == 1 else None
    return None


def _find_exact(catalog: Catalog, word: str) -> tuple[Flag, HowFound] | None:
    for flag in catalog.flags:
        if word == flag.name:
            return flag, "name"
        if word in flag.aliases:
            return flag, "alias"
        if word in flag.negated:
            return flag, "negated"
    return None


def _find_attached(catalog: Catalog, word: str) -> FlagMatch | None:
    """Returns a flag of one letter whose value follows without a blank, such as `-O3`; Python's parsers take that."""
    if "equals" not in catalog.spellings or word.startswith("--") or len(word) <= len("-O"):
        return None
    found = _find_exact(catalog, word[:2])
    return FlagMatch(found[0], "attached", word[2:]) if found and found[0].type != "switch" else None


def words_of(flag: Flag) -> tuple[str, ...]:
    """Returns every word that means this flag or its opposite."""
    return (flag.name, *flag.aliases, *flag.negated)


def suggest_flag(catalog: Catalog, word: str, others: Sequence[Catalog] = ()) -> Suggestion | None:
    """Returns what to write instead of a word that is no flag: the new name of an old one, else the one most like it.

    `others` are the catalogs of other versions, oldest first; they know what the word once meant, or will mean.
    """
    asked = _plain(word)
    if instead := catalog.gone.get(asked):
        return Suggestion(instead, f"{asked} was replaced by it")
    for said, because in replacements([*others, catalog]).get(asked, ()):
        if _find_exact(catalog, said.partition("=")[0]):
            return Suggestion(said, because)
    elsewhere = [(other, found[0]) for other in others if (found := _find_exact(other, asked))]
    for other, flag in elsewhere:
        for alias in words_of(flag):
            if alias not in flag.negated and _find_exact(catalog, alias):
                return Suggestion(alias, f"both mean the same in {other.engine} {other.version}")
    if elsewhere:
        return None  # a real flag of another version: whatever looks like it means something else
    alike = _most_alike(asked, [one for flag in catalog.flags for one in words_of(flag)])
    return Suggestion(alike, "it is spelled most like it") if alike else None


def _most_alike(asked: str, words: Sequence[str]) -> str | None:
    """Returns the word that is either nearly the same, or shares most of its parts with the one asked for."""
    close = difflib.get_close_matches(asked, words, n=CANDIDATES, cutoff=ALIKE)
    meant = [one for one in close if one.startswith(OPPOSITE) == asked.startswith(OPPOSITE)]
    rated = [(_shared(asked, one), difflib.SequenceMatcher(None, one, asked).ratio(), one) for one in meant]
    near = [(shared + ratio, one) for shared, ratio, one in rated if shared > HALF or ratio >= SAME]
    return max(near, default=(0, None))[1]


def _shared(asked: str, other: str) -> float:
    """Returns which part of the telling words of two names they have in common, from 0 to 1."""
    ours, theirs = _telling(asked), _telling(other)
    common = [word for word in ours if difflib.get_close_matches(word, theirs, n=1, cutoff=SAME_WORD)]
    return len(common) / max(len(ours) + len(theirs) - len(common), 1)


def _telling(name: str) -> list[str]:
    return [word for word in name.strip("-").split("-") if word and word not in GENERIC]


def _plain(word: str) -> str:
    return word.partition("=")[0].partition(".")[0].replace("_", "-")


def keep_names(catalog: Catalog, earlier: Catalog | None) -> Catalog:
    """Returns the catalog with its flags called as in an earlier version, so that a new alias does not rename a flag."""
    names = {flag.name for flag in earlier.flags} if earlier else set()
    flags = (_call(flag, next((word for word in flag.aliases if word in names), flag.name), names) for flag in catalog.flags)
    return msgspec.structs.replace(catalog, flags=tuple(sorted(flags, key=lambda flag: flag.name)))


def _call(flag: Flag, name: str, names: set[str]) -> Flag:
    if flag.name in names or name == flag.name:
        return flag
    others = sorted({flag.name, *flag.aliases} - {name})
    return msgspec.structs.replace(flag, name=name, aliases=tuple(others))


def find_lifetimes(catalogs: Iterable[Catalog]) -> dict[str, Lifetime]:
    """Returns, for every word that is a flag in some of these versions, since which and until which it is one.

    `catalogs` are in order, the oldest first.
    """
    versions = [(one.version, {word for flag in one.flags for word in words_of(flag)}) for one in catalogs]
    found = {}
    for word in set().union(*(words for _, words in versions)):
        holding = [at for at, (_, words) in enumerate(versions) if word in words]
        since = versions[holding[0]][0] if holding[0] > 0 else None
        found[word] = Lifetime(since, versions[holding[-1]][0] if holding[-1] < len(versions) - 1 else None)
    return found


def search_flags(catalog: Catalog, text: str) -> tuple[Flag, ...]:
    """Returns the flags that have the text in a word or a choice."""
    wanted = text.lower().replace("_", "-").lstrip("-")
    return tuple(
        flag
        for flag in catalog.flags
        if any(wanted in one.lower().replace("_", "-") for one in (*words_of(flag), *flag.choices))
    )
