"""What changed between two versions of an engine's command line: added, removed, renamed, re-defaulted. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence

from stoker.records import Catalog, Flag
from stoker.records.flags import CatalogChanges, Changed, Renamed

# Of SGLang's versions: --enable-deepep-waterfill became --enable-waterfill without a word (0.837 alike), and
# --disaggregation-decode-tp did not become --disaggregation-decode-extra-slots (0.82).
SAME_NAME = 0.83
ANYTHING = "anything"


def compare_catalogs(before: Catalog, after: Catalog, between: Sequence[Catalog] = ()) -> CatalogChanges:
    """Returns what is different in the later catalog; catalogs of versions in between help to follow a flag's name."""
    removed = [flag for flag in before.flags if not _finds(after, flag.name)]
    added = [flag for flag in after.flags if not _finds(before, flag.name)]
    renamed = _moved(before, after)
    renamed += _replaced(_not_yet(removed, renamed), after, [before, *between, after])
    renamed += _alike(_not_yet(removed, renamed), _not_in(added, renamed))
    gone, come = {one.before for one in renamed}, {one.after for one in renamed}
    same = [(flag, found) for flag in before.flags if (found := _named(after, flag.name))]
    return CatalogChanges(
        engine=after.engine,
        before=before.version,
        after=after.version,
        added=tuple(flag for flag in added if flag.name not in come),
        removed=tuple(flag for flag in removed if flag.name not in gone),
        renamed=tuple(sorted(renamed, key=lambda one: one.before)),
        # A flag that goes out of use loses its default too, which changes nothing.
        defaults=_changed([pair for pair in same if not pair[1].deprecated], lambda flag: say_default(flag.default)),
        choices=_changed_choices(same),
        words=_changed_words(same),
        types=_changed(same, lambda flag: flag.type + (" ..." if flag.many else "")),
        deprecated=_changed(same, lambda flag: flag.deprecated),
    )


def replacements(catalogs: Iterable[Catalog]) -> dict[str, list[tuple[str, str]]]:
    """Returns, for words that an engine calls deprecated or gone, what to write instead, the newest advice first."""
    found: dict[str, list[tuple[str, str]]] = {}
    for catalog in catalogs:
        said = [(word, flag.deprecated.removeprefix("use ")) for flag in catalog.flags for word in (flag.name, *flag.aliases)
                if flag.deprecated.startswith("use --")]  # fmt: skip
        for word, instead in (*said, *((word, instead) for word, instead in catalog.gone.items() if instead)):
            found.setdefault(word, []).insert(0, (instead, f"{catalog.engine} {catalog.version} says so"))
    return found


def say_default(value: str | int | float | bool | None) -> str:
    """Returns a default as one would write it; empty where there is none."""
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _finds(catalog: Catalog, word: str) -> bool:
    return any(word in (flag.name, *flag.aliases) for flag in catalog.flags)


def _named(catalog: Catalog, name: str) -> Flag | None:
    return next((flag for flag in catalog.flags if flag.name == name), None)


def _not_yet(removed: list[Flag], renamed: list[Renamed]) -> list[Flag]:
    said = {one.before for one in renamed}
    return [flag for flag in removed if flag.name not in said]


def _not_in(flags: list[Flag], renamed: list[Renamed]) -> list[Flag]:
    taken = {one.after for one in renamed}
    return [flag for flag in flags if flag.name not in taken]


def _moved(before: Catalog, after: Catalog) -> list[Renamed]:
    """Returns flags whose old name is now an alias of another, and those whose alias became the name."""
    moves = []
    for flag in before.flags:
        if _named(after, flag.name):
            continue
        if now := next((one for one in after.flags if flag.name in one.aliases), None):
            moves.append(Renamed(flag.name, now.name, "the old name is an alias of it", old_works=True))
        elif now := next((one for one in after.flags if set(flag.aliases) & {one.name, *one.aliases}), None):
            shared = min(set(flag.aliases) & {now.name, *now.aliases})
            moves.append(Renamed(flag.name, now.name, f"{shared} means both"))
    return moves


def _replaced(removed: list[Flag], after: Catalog, catalogs: Sequence[Catalog]) -> list[Renamed]:
    """Returns removed flags of which the engine itself said what to use instead."""
    known = replacements(catalogs)
    return [
        Renamed(flag.name, instead, because)
        for flag in removed
        for instead, because in known.get(flag.name, ())[:1]
        if _finds(after, instead.partition("=")[0])
    ]


def _alike(removed: list[Flag], added: list[Flag]) -> list[Renamed]:
    """Returns pairs of a removed and an added flag that take the same and are spelled alike, the most alike first."""
    pairs = [
        (likeness, old.name, new.name)
        for old in removed
        for new in added
        if (old.type, old.many, old.default) == (new.type, new.many, new.default)
        and (likeness := _likeness(old.name, new.name)) >= SAME_NAME
    ]
    found: dict[str, str] = {}
    for _, old_name, new_name in sorted(pairs, reverse=True):
        if old_name not in found and new_name not in found.values():
            found[old_name] = new_name
    return [Renamed(old, new, "it takes the same and is spelled alike") for old, new in found.items()]


def _likeness(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio()


def _changed(same: list[tuple[Flag, Flag]], read: Callable[[Flag], str]) -> tuple[Changed, ...]:
    pairs = ((old.name, read(old), read(new)) for old, new in same)
    return tuple(Changed(name, was, now) for name, was, now in pairs if was != now)


def _changed_words(same: list[tuple[Flag, Flag]]) -> tuple[Changed, ...]:
    """Returns the other words for a flag that are no longer taken, and those that are taken now."""
    pairs = [(old, {*old.aliases, *old.negated}, {*new.aliases, *new.negated}) for old, new in same]
    return tuple(
        Changed(old.name, ", ".join(sorted(was - now)), ", ".join(sorted(now - was)))
        for old, was, now in pairs
        if was != now
    )


def _changed_choices(same: list[tuple[Flag, Flag]]) -> tuple[Changed, ...]:
    """Returns the values that flags no longer take and those that they take now; `ANYTHING` where they are not a list."""
    changed = []
    for old, new in same:
        lost = [one for one in old.choices if one not in new.choices] if old.choices else [ANYTHING]
        won = [one for one in new.choices if one not in old.choices] if new.choices else [ANYTHING]
        if lost != won:
            changed.append(Changed(new.name, ", ".join(lost), ", ".join(won)))
    return tuple(changed)
